"""Two entries of Krita's menu Tools > Scripts, for which the studio paints.

"Paint by styletransfer" paints the active layer in the style of a file. "Paint another photograph
like this one" paints a file as the active layer was painted: the visible picture is the painting.
"""

from functools import partial
from pathlib import Path

from krita import Extension, Krita
from PyQt5.QtCore import QBuffer, QRect, Qt, QThread, pyqtSignal
from PyQt5.QtGui import QImage, QPainter
from PyQt5.QtWidgets import QApplication, QFileDialog, QInputDialog, QMessageBox, QProgressDialog

from .studio import AddressError, paint

KRITA, TITLE = Krita.instance(), "Paint by styletransfer"
ANOTHER = "Paint another photograph like this one"
PICTURES = "Pictures (*.png *.jpg *.jpeg *.webp *.tif *.tiff)"


class Painting(QThread):
    """A Painting waits in a thread for the pastiche of a layer, and puts it above the layer."""

    told = pyqtSignal(int)  # percent

    def __init__(self, window, document, layer, is_pair):
        super().__init__()
        self.window, self.document, self.layer, self.is_pair = window, document, layer, is_pair
        self.where, self.selection = layer.bounds() & document.bounds(), document.selection()
        if is_pair:
            self.where, self.selection = document.bounds(), None
        if chosen := self.selection:
            self.where &= QRect(chosen.x(), chosen.y(), chosen.width(), chosen.height())
        self.finished.connect(self.end)

    def ask(self):
        """Ask for a picture and a size, and send both with the layer's pixels."""
        x, y, width, height = self.where.getRect()
        asked = "The other photograph" if self.is_pair else "The painting"
        file, _ = QFileDialog.getOpenFileName(self.window, asked, "", PICTURES)
        if not file:
            return
        label, longest = "The longer side in pixels; more take longer:", max(width, height)
        given = QInputDialog.getInt(self.window, TITLE, label, min(longest, 512), 1, longest)
        self.file, (self.size, is_given) = Path(file), given
        pixels = self.layer.projectionPixelData(x, y, width, height)
        self.photograph = self.layer.name(), png_of(pixels, width, height)
        self.painting = None
        if self.is_pair:
            pixels = self.document.pixelData(x, y, width, height)
            self.painting = "painting", png_of(pixels, width, height)
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
            file = self.file.name, self.file.read_bytes()
            pictures = (file, self.painting) if self.is_pair else (self.photograph, file)
            source = self.photograph if self.is_pair else None
            self.picture = paint(self.address, *pictures, self.size, tell, source)
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
        shape = Qt.KeepAspectRatio if self.is_pair else Qt.IgnoreAspectRatio
        image = image.scaled(width, height, shape, Qt.SmoothTransformation)
        width, height = image.width(), image.height()
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
        """Return a new layer above the layer, or for a pair above all others.

        Undo removes it if its document is in front.
        """
        below = self.document.rootNode().childNodes()[-1] if self.is_pair else self.layer
        parent = below.parentNode()
        before = parent.childNodes()
        if self.document == KRITA.activeDocument():
            self.document.setActiveNode(below)
            KRITA.action("add_new_paint_layer").trigger()
            self.document.waitForDone()
        else:
            parent.addChildNode(self.document.createNode("", "paintlayer"), below)
        return next(layer for layer in parent.childNodes() if layer not in before)


def png_of(pixels, width, height):
    """Return the bytes of a PNG of Krita's pixels, 8 bits for blue, green, red and alpha each."""
    png = QBuffer()
    QImage(pixels, width, height, QImage.Format_ARGB32).save(png, "PNG")
    return bytes(png.data())


class Menu(Extension):
    """The Menu has the plug-in's entries."""

    def setup(self):
        """Begin without paintings; Krita calls it once."""
        self.paintings = []  # Python would forget a thread that has no other reference

    def createActions(self, window):
        """Add the entries to a window's menu."""
        for name, text in ("paint_by_styletransfer", TITLE), ("paint_another_like_this", ANOTHER):
            action = window.createAction(name, text, "tools/scripts")
            action.triggered.connect(partial(self.paint, text == ANOTHER))

    def paint(self, is_pair, *_):
        """Paint the active layer, or a file as it was painted, if the layer can be sent."""
        window, document = KRITA.activeWindow().qwindow(), KRITA.activeDocument()
        layer = document and document.activeNode()
        colors = {one.colorModel() + one.colorDepth() for one in (document, layer) if layer}
        if colors != {"RGBAU8"} or layer.type() != "paintlayer":
            said = "Choose a paint layer of an image with 8-bit RGB colours, or convert it to one."
            QMessageBox.warning(window, TITLE, said)
            return
        painting = Painting(window, document, layer, is_pair)
        if painting.where.isEmpty():
            QMessageBox.warning(window, TITLE, "There is nothing to paint on this layer.")
        else:
            self.paintings = [*filter(QThread.isRunning, self.paintings), painting]
            painting.ask()


KRITA.addExtension(Menu(KRITA))
