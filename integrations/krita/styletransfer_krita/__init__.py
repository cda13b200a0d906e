"""Krita's menu Tools > Scripts > Paint by styletransfer: the studio paints the active layer."""

from pathlib import Path

from krita import Extension, Krita
from PyQt5.QtCore import QBuffer, QRect, Qt, QThread, pyqtSignal
from PyQt5.QtGui import QImage, QPainter
from PyQt5.QtWidgets import QApplication, QFileDialog, QInputDialog, QMessageBox, QProgressDialog

from .studio import AddressError, paint

KRITA, TITLE = Krita.instance(), "Paint by styletransfer"
PICTURES = "Pictures (*.png *.jpg *.jpeg *.webp *.tif *.tiff)"


class Painting(QThread):
    """A Painting waits in a thread for the pastiche of a layer, and puts it above the layer."""

    told = pyqtSignal(int)  # percent

    def __init__(self, window, document, layer):
        super().__init__()
        self.window, self.document, self.layer = window, document, layer
        self.where, self.selection = layer.bounds() & document.bounds(), document.selection()
        if chosen := self.selection:
            self.where &= QRect(chosen.x(), chosen.y(), chosen.width(), chosen.height())
        self.finished.connect(self.end)

    def ask(self):
        """Ask for the painting and a size, and send both with the layer's pixels."""
        x, y, width, height = self.where.getRect()
        file, _ = QFileDialog.getOpenFileName(self.window, "The painting", "", PICTURES)
        if not file:
            return
        label, longest = "The longer side in pixels; more take longer:", max(width, height)
        given = QInputDialog.getInt(self.window, TITLE, label, min(longest, 512), 1, longest)
        self.file, (self.size, is_given) = Path(file), given
        pixels, png = self.layer.projectionPixelData(x, y, width, height), QBuffer()
        QImage(pixels, width, height, QImage.Format_ARGB32).save(png, "PNG")
        self.photograph = self.layer.name(), bytes(png.data())
        if is_given:
            self.send()

    def send(self, why=""):
        """Begin to paint; ask for the studio's address if it is unknown, or if a line says why."""
        self.address = KRITA.readSetting(TITLE, "address", "")
        if why or not self.address:
            label = f"{why}\nPaste the address that python scripts/studio.py prints:".strip()
            given = QInputDialog.getText(self.window, TITLE, label, text=self.address)
            self.address, is_given = given
            if not is_given:
                return
            KRITA.writeSetting(TITLE, "address", self.address)
        self.bar = QProgressDialog("The studio paints.", "Stop", 0, 100, self.window)
        self.bar.canceled.connect(self.requestInterruption)
        self.told.connect(self.bar.setValue)
        self.bar.show()
        self.start()

    def run(self):
        """Wait for the pastiche, in the thread."""
        self.picture = self.error = None
        tell = lambda percent: self.told.emit(percent) or self.isInterruptionRequested()  # noqa: E731
        try:
            files = self.photograph, (self.file.name, self.file.read_bytes())
            self.picture = paint(self.address, *files, self.size, tell)
        except Exception as error:  # an error that left the thread would end Krita
            self.error = error

    def end(self):
        """Put the pastiche on a new layer, or say why there is none."""
        self.bar.close()
        self.bar.deleteLater()  # so that `told` has one bar if this is sent again
        if isinstance(self.error, AddressError):
            self.send(str(self.error))
        elif self.error or not self.layer.parentNode():
            said = self.error or "The layer is gone; the studio's page has the picture."
            QMessageBox.warning(self.window, TITLE, str(said))
        elif self.picture:  # there is none if it was stopped before its beginning
            self.put(QImage.fromData(self.picture))

    def put(self, image):
        """Put a picture on a new layer, where the layer or what was selected of it is."""
        x, y, width, height = self.where.getRect()
        image = image.convertToFormat(QImage.Format_ARGB32)
        image = image.scaled(width, height, Qt.IgnoreAspectRatio, Qt.SmoothTransformation)
        if self.selection:
            chosen = self.selection.pixelData(x, y, width, height)
            painter = QPainter(image)
            painter.setCompositionMode(QPainter.CompositionMode_DestinationIn)
            painter.drawImage(0, 0, QImage(chosen, width, height, width, QImage.Format_Alpha8))
            painter.end()
        layer = self.new_layer()
        QApplication.processEvents()  # Krita's list of layers has the layer only then
        layer.setName(self.file.stem)
        layer.setPixelData(image.constBits().asstring(4 * width * height), x, y, width, height)
        self.document.refreshProjection()

    def new_layer(self):
        """Return a new layer above the layer; Undo removes it if its document is in front."""
        parent = self.layer.parentNode()
        before = parent.childNodes()
        if self.document == KRITA.activeDocument():
            self.document.setActiveNode(self.layer)
            KRITA.action("add_new_paint_layer").trigger()
            self.document.waitForDone()
        else:
            parent.addChildNode(self.document.createNode("", "paintlayer"), self.layer)
        return next(layer for layer in parent.childNodes() if layer not in before)


class Menu(Extension):
    """The Menu has the plug-in's entry."""

    def setup(self):
        """Begin without paintings; Krita calls it once."""
        self.paintings = []  # Python would forget a thread that has no other reference

    def createActions(self, window):
        """Add the entry to a window's menu."""
        action = window.createAction("paint_by_styletransfer", TITLE, "tools/scripts")
        action.triggered.connect(self.paint)

    def paint(self):
        """Paint the active layer, if it can be sent."""
        window, document = KRITA.activeWindow().qwindow(), KRITA.activeDocument()
        layer = document and document.activeNode()
        colors = {one.colorModel() + one.colorDepth() for one in (document, layer) if layer}
        if colors != {"RGBAU8"} or layer.type() != "paintlayer":
            said = "Choose a paint layer of an image with 8-bit RGB colours, or convert it to one."
            QMessageBox.warning(window, TITLE, said)
            return
        painting = Painting(window, document, layer)
        if painting.where.isEmpty():
            QMessageBox.warning(window, TITLE, "There is nothing to paint on this layer.")
        else:
            self.paintings = [*filter(QThread.isRunning, self.paintings), painting]
            painting.ask()


KRITA.addExtension(Menu(KRITA))
