"""The page in a real browser: its parts, a complete run at two widths, and accessibility."""

import json
import re
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from films.film_files import make
from helpers import picture
from PIL import Image, ImageOps
from studio.studio_pages import dab, png, served, violations, visit
from studio.studios import bytes_of

from styletransfer.films.read import Film
from styletransfer.studio import access

pytestmark = pytest.mark.slow

# Addresses of first looks, without the smaller ones on the tiles.
FIRST_LOOK = re.compile(r"/api/look\?.*side=2048")
WEIGHT = "objective.content_weight"
BOXES = """['.stage', '.actions', '#go'].map(
  (one) => JSON.stringify(document.querySelector(one).getBoundingClientRect())).join()"""

IS_SHOWN = """async (url) => {
  const [image, canvas] = [new Image(), document.createElement("canvas")];
  image.src = url;
  await image.decode();
  [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
  canvas.getContext("2d").drawImage(image, 0, 0);
  return canvas.toDataURL() === document.getElementById("canvas").toDataURL();
}"""


def test_a_chosen_style_is_seen_at_once(page):
    """Check that the page shows a preview by the network for any style before a run starts."""
    is_it = lambda answer: FIRST_LOOK.search(answer.url) and "woodcut" in answer.url  # noqa: E731
    with page.expect_response(is_it) as looked:
        page.click("[data-picker=style] .tile[title=woodcut]")
    page.wait_for_function(IS_SHOWN, arg=looked.value.url)
    page.expect("#status").to_have_text("Sketch")
    page.click("[data-picker=style] .tile:has-text('great wave')")
    page.expect("[data-picker=style] > p").to_contain_text("Hokusai, Under the Wave")
    page.expect("#original").to_have_attribute("src", "/api/pictures/content-coffee?side=2048")
    page.click("[data-picker=style] .tile[title=oil]")


def test_tiles_show_the_photograph_in_each_style_and_look(address, visited):
    """Check that each tile shows the chosen photograph, and the style itself under the pointer."""
    with visited(address, made="style-(oil|woodcut).*side=256|trial=1") as page:
        for name, styles in (("rocket", ["oil"]), ("coffee", ["oil", "woodcut"])):
            page.click(f"[data-picker=content] .tile[title={name}]")
            for style in styles:
                look = page.locator(f"[data-picker=style] .tile[title={style}] .look")
                expect = page.expect(f"[data-picker=style] .tile[title={style}] .look")
                wanted = re.compile(f"content-{name}.*style-{style}.*side=256")
                expect.to_have_attribute("src", wanted)
                expect.to_have_js_property("naturalWidth", 256)
                look.locator("..").locator("..").hover()
                expect.to_have_css("opacity", "0")
        page.expect("[data-picker=style] .tile[title=mosaic] .look").to_have_css("opacity", "1")
        far = "[data-picker=style] .tile:has-text('village street')"  # below the wall's edge
        page.expect(f"{far} .look").to_have_count(0)
        page.locator(far).scroll_into_view_if_needed()
        page.expect(f"{far} .look").to_have_count(1)
        for name in ("painted", "faithful"):
            picture = f"#looks .tile:has-text('{name}') img"
            page.expect(picture).to_have_attribute("src", re.compile("content-coffee.*trial"))
            page.expect(picture).to_have_js_property("naturalWidth", 112)
        assert page.complaints == []


@pytest.mark.usefixtures("icons")
def test_refusals_stand_beside_their_controls_until_they_change(fresh):
    error = f"[data-control='{WEIGHT}'] .error"
    fresh.enter(WEIGHT, "-1")
    fresh.expect(error).to_contain_text("must be 0 or more")
    fresh.enter("size", "99999999")
    fresh.expect("[data-control=size] .error").to_contain_text("and at most")
    fresh.enter(WEIGHT, "0.25")
    fresh.expect(error).to_be_hidden()
    fresh.enter("size", "96")
    fresh.expect("#pixels").to_contain_text("96 \u00d7 64 pixels")
    fresh.enter("size", "512")
    fresh.expect("[id=control-size]").to_have_value("512")
    fresh.expect("#details pre").not_to_contain_text("size")
    fresh.drop("[data-picker=style]", letter=b"Dear Sir or Madam")
    fresh.expect("[data-control=style] .error").to_contain_text("letter.png")
    fresh.expect("[data-picker=style] [aria-pressed=true]").to_have_text("oil")
    fresh.paint_tiny()
    fresh.enter(WEIGHT, "-1")  # is refused: the old value returns and the run continues
    fresh.expect(error).to_be_visible()
    fresh.expect(f"[id='control-{WEIGHT}']").to_have_value("0.25")
    fresh.expect("#go").to_have_text("Pause")
    fresh.enter("style_scale", "2")  # an accepted change hides the error
    fresh.expect(error).to_be_hidden()


FITS = {"size": 96, "style": ["style-mosaic"], "color": "style"}
FOREIGN = ["null", "x", "3", '"text"', "[]", "[" * 9999, '{"size": "' + "x" * 2**16 + '"}']
# Values that no control can have -> the labels of the controls.
MISFITS = {
    '"size": {}, "color": "gold"': "Size, Colours",
    '"style": [null, 3]': "Style",
    '"style": {"a": "b"}, "color": 5': "Style, Colours",
    '"content": ["content-rocket"], "style_weights": "x"': "Photograph, How much of each style",
    '"style_weights": [1, "x"], "size": 1e999': "How much of each style, Size",
}
REMEMBERED = """(text) => import('/static/store.js').then(({ remembered }) => {
  localStorage.setItem('settings', text);
  return { ...remembered(), aside: localStorage.getItem('settings.unread') };
})"""


@pytest.mark.usefixtures("icons")
def test_foreign_values_in_storage_are_put_aside_and_told(page):
    """What the page can read is back, also after a reload; the whole text is kept."""
    for text in FOREIGN:
        found = page.evaluate(REMEMBERED, text)
        assert (found["settings"], found["aside"]) == ({}, text)
        assert "cannot be read: all." in found["message"]
    for values, labels in MISFITS.items():
        text = f"{{{json.dumps(FITS)[1:-1]}, {values}}}"
        found = page.evaluate(REMEMBERED, text)
        gone = json.loads(f"{{{values}}}").keys()
        assert found["settings"] == {key: FITS[key] for key in FITS if key not in gone}
        assert sorted(found["message"].split("read: ")[1].split(".")[0].split(", ")) == sorted(
            labels.split(", ")
        )
        assert found["aside"] == text
    page.evaluate("localStorage.setItem('settings', 'null')")
    page.reload()
    page.expect("#messages").to_contain_text("cannot be read: all.")
    page.enter("size", "80")
    page.reload()
    page.expect("#details pre").to_contain_text("size=80")
    page.expect("#messages").to_have_text("")


def test_a_page_without_storage_works(address, visited):
    with visited(address, made=None) as page:
        off = "Object.defineProperty(window, 'localStorage', { get() { throw new Error('off') } })"
        page.page.add_init_script(off)
        page.reload()
        page.expect("#details pre").to_contain_text("styletransfer train")
        page.enter("size", "80")
        page.expect("#details pre").to_contain_text("size=80")
        assert page.complaints == []


@pytest.mark.usefixtures("icons")
def test_styles_are_mixed_by_sliders_and_not_with_regions(page):
    """Check that drawn regions take the place of shares, and that too many styles are told."""
    page.locator("[data-picker=style] .tile[title=mosaic] input").press("End")
    page.expect("[data-picker=style] [aria-pressed=true]").to_have_count(2)
    page.locator("[data-picker=style] .tile[title=mosaic] input").press("PageDown")
    page.expect("#details pre").to_contain_text("style_weights=[1,0.9]")
    page.click("#brush")
    page.locator("#stage").press(" ")
    page.expect("#details pre").to_contain_text("region_styles=")
    page.expect("#details pre").not_to_contain_text("style_weights")
    page.expect("[data-picker=style] input[type=range]").to_have_count(0)
    page.expect("#brushes .dabs button").to_have_text(["oil", "mosaic", "photograph"])
    page.expect("#details pre").to_contain_text("region_styles={blue:1,red:2}")
    page.click("[data-picker=style] .tile[title=woodcut]")  # adds it
    page.expect("[data-picker=style] [aria-pressed=true]").to_have_count(3)
    page.click("#brushes >> text=woodcut")
    page.click("#brushes >> text=Fill")
    page.expect("#details pre").to_contain_text("region_styles={gold:3}")
    page.click("[data-picker=content] .tile[title=astronaut]")
    page.expect("#details pre").not_to_contain_text("regions")
    page.click("#brush")  # else the tile is what the brush paints with
    page.click("[data-picker=style] .tile[title=oil]")
    many = "['style-mosaic', ...Array(16).fill('style-oil')]"
    page.evaluate(f"import('/static/store.js').then((all) => all.change({{ style: {many} }}))")
    page.expect("[data-control=style] .error").to_contain_text("At most 16 styles")
    page.expect("[data-picker=style] [aria-pressed=true]").to_have_text("oil")


def test_an_upload_is_seen_at_once_and_awaited_by_keep(fresh):
    """Check tile, bar and stage before the server has the file; then keep it, unless refused."""
    held = []
    fresh.enter("size", "96")
    fresh.route("**/api/pictures?name=*", lambda route: held.append(route))
    fresh.drop("#stage", harbour=png(96, 64, "navy"))
    fresh.expect("[data-picker=content] .waiting").to_have_attribute("title", "harbour.png")
    fresh.expect("[data-picker=content] .waiting progress").to_be_visible()
    fresh.expect("[data-picker=content] .waiting img").to_have_js_property("naturalWidth", 96)
    fresh.expect("#title").to_have_text("harbour.png")
    fresh.expect("#status").to_have_text("Reading harbour.png")
    fresh.expect("#canvas").to_have_js_property("width", 96)
    fresh.expect("#stage").to_have_attribute("aria-busy", "true")
    fresh.click("#keep")
    fresh.expect("#keep").to_have_attribute("aria-busy", "true")
    held[0].continue_()
    fresh.expect("#title").to_have_text("harbour in oil")
    fresh.expect("#status").to_have_text("Sketch, kept")
    fresh.expect("[data-picker=content] .waiting").to_have_count(0)
    fresh.expect("[data-picker=content] [aria-pressed=true]").to_have_text("harbour")
    assert fresh.complaints == []
    fresh.go_back()
    fresh.drop("#stage", letter=b"Dear Sir or Madam")
    fresh.expect("#status").to_have_text("Reading letter.png")
    fresh.click("#keep")
    fresh.expect("#keep").to_have_attribute("aria-busy", "true")
    held[1].continue_()
    fresh.expect("[data-control=content] .error").to_contain_text("letter.png")
    fresh.expect("#keep").not_to_have_attribute("aria-busy", "true")
    fresh.expect("#status").to_have_text("Sketch")
    fresh.expect("#strip .thumb").to_have_count(1)


def test_an_awaited_picture_is_busy_and_the_newest_comes_first(page):
    held, is_slow = [], [True]
    page.route(FIRST_LOOK, lambda one: held.append(one) if is_slow else one.continue_())
    tiles = page.locator("[data-picker=style] .tiles")
    tiles.evaluate("(all) => { all.style.maxHeight = '3rem'; all.scrollTop = 999; }")
    page.drop("[data-picker=style]", early=png(40, 40, "navy"), late=png(40, 40, "sienna"))
    for place, name in ((1, "late.png"), (2, "early.png")):
        tile = f"[data-picker=style] .tile >> nth={place}"  # after the one that adds files
        page.expect(tile).to_have_attribute("title", name)
    assert tiles.evaluate("(all) => all.scrollTop") == 0
    page.expect("#stage").to_have_attribute("aria-busy", "true")
    is_slow.clear()
    while held:
        held.pop().continue_()
    page.expect("#stage").not_to_have_attribute("aria-busy", "true")


@pytest.mark.usefixtures("icons")
def test_brush_works_by_keys(page):
    page.click("#brush")
    page.locator("#stage").press(" ")
    page.expect("#details pre").to_contain_text("protect=")
    page.click("#brushes >> text=Clear all")
    page.expect("#details pre").not_to_contain_text("protect=")
    page.click("[data-picker=style] .tile[title=mosaic] button")
    page.locator("#stage").press(" ")
    page.expect("#details pre").to_contain_text("content_regions=")
    page.keyboard.press("Control+z")
    page.expect("#details pre").not_to_contain_text("content_regions=")
    page.keyboard.press("Escape")
    page.expect("#brushes").to_be_hidden()


@pytest.mark.usefixtures("icons")
def test_words_choose_the_size(page):
    sizes = "[data-control=size] .segments"
    for word, size in (("Quick", "256"), ("Screen", "1024"), ("As the photograph", "600")):
        page.click(f"{sizes} >> text={word}")
        page.expect("[id=control-size]").to_have_value(size)
        page.expect(f"{sizes} [aria-pressed=true]").to_have_text(word)


def test_picture_is_zoomed_and_moved_and_compared_by_keys(page):
    stage = page.locator("#stage")
    stage.press("1")
    page.expect("#percent").to_have_text("100 %")
    page.expect("#one").to_have_attribute("aria-pressed", "true")
    stage.press("+")
    page.expect("#percent").to_have_text("150 %")
    page.click("#fit")
    page.expect("#fit").to_have_attribute("aria-pressed", "true")
    stage.hover()
    page.mouse.wheel(0, -500)
    page.expect("#fit").to_have_attribute("aria-pressed", "false")
    page.click("#compare")
    for key, share in (("ArrowRight", "51"), ("End", "100")):
        page.locator("#divider").press(key)
        page.expect("#divider").to_have_value(share)
        page.expect("#before").to_have_css("clip-path", f"inset(0px {100 - int(share)}% 0px 0px)")


def test_the_page_tells_of_a_lost_and_of_a_new_server(tmp_path, visited):
    with served(tmp_path) as studio:
        address = studio.address
        opened = visited(address, made=None)
        page = opened.__enter__()
        page.paint_tiny()
    page.expect("#messages").to_contain_text("does not answer")
    page.expect("#status").to_have_text("Not connected")
    page.click("#go")  # repeats the message; the page shows one copy
    page.expect("#go").not_to_have_attribute("aria-busy", "true")
    page.expect("#messages .message").to_have_count(1)
    with served(tmp_path) as again:
        assert again.address == address
        page.expect("#messages").to_have_text("")
        page.expect("#status").to_contain_text("Stopped after")
        page.enter("size", "130")
        page.expect("#details pre").to_contain_text("steps=50000")  # as the panel showed
        page.go_back()
        page.expect("#title").to_have_text("coffee")
        page.expect("#details pre").to_contain_text("size=130")
        said = {"status": 403, "json": {"error": access.ADVICE}}  # of a server with another token
        page.route("**/api/pictures", lambda route: route.fulfill(**said))
    page.expect("#messages").to_contain_text("open the address that the studio has printed")
    opened.__exit__(None, None, None)


def settled(page):
    """Check a state of the page: nothing wider than the screen, no violation, no complaint."""
    width = page.viewport_size["width"]  # innerWidth of a phone grows with what is too wide
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert violations(page) == []
    assert page.complaints == []


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_the_tour_in_the_docs(width, scheme, address, visited):
    """Go through the tour of docs/studio.md, in its order, with one run."""
    with visited(address, width, scheme) as page:
        assert page.locator(".control:visible").count() == 7
        assert page.locator(".actions button").all_text_contents() == [
            *("Paint", "Add to Results", "Undo", "Redo")
        ]
        page.drop("#stage", harbour=png(96, 64, "navy"), rust=png(60, 60, "sienna"))
        page.expect("[data-picker=content] [aria-pressed=true]").to_contain_text("harbour")
        page.expect("[data-picker=style] [aria-pressed=true]").to_contain_text("rust")
        page.locator(".tile[title=oil] input").press("End")
        page.locator(".tile[title=oil] input").press("PageDown")
        page.expect("#details pre").to_contain_text("style_weights=[1,0.9]")
        settled(page)
        page.locator(".tile[title=oil] input").press("Home")
        page.expect("[data-picker=style] [aria-pressed=true]").to_have_text("rust")
        page.expect("#looks [aria-pressed=true]").to_have_text("painted")
        page.click("#looks >> text=bold")
        page.expect("#looks [aria-pressed=true]").to_have_text("bold")
        page.expect("#look-help").to_contain_text("A bold look")
        page.expect("#details pre").to_contain_text("match_weight=2")
        page.unfold()
        for about in page.locator(".about:visible").all():
            about.click()
        page.expect("#control-size-help").to_be_visible()
        settled(page)
        page.last_long()
        before = page.evaluate(BOXES)
        page.paint()
        page.expect("#title").to_contain_text("harbour")
        if width > 1000:
            assert page.evaluate(BOXES) == before  # no box moves while a run paints
        page.locator(f"[data-control='{WEIGHT}'] input[type=range]").focus()
        page.keyboard.press("ArrowRight")
        page.expect("#details pre").to_contain_text("content_weight=")
        page.click(".whose >> text=the next picture")
        page.click("#enqueue")
        page.expect("#queue li").to_have_count(1)
        settled(page)
        page.click("#queue button")
        page.expect("#queue").to_be_hidden()
        page.click(".whose >> text=this picture")
        page.click("#compare")
        page.expect("#divider").to_be_visible()
        settled(page)
        page.click("#compare")
        page.click("#brush")
        page.expect("#overlay").to_be_visible()
        settled(page)
        dab(page)
        page.expect("#details pre").to_contain_text("protect=")
        page.expect("#whose").to_contain_text("last settings from the start")
        page.keyboard.press("Escape")
        page.expect("#overlay").to_be_hidden()
        for text in ("Continue", "Pause"):
            page.click("#go")
            page.expect("#go").to_have_text(text)
        page.click("#stop")
        page.expect("#status").to_contain_text("Stopped")
        page.expect("#go").to_have_text("Continue")
        page.expect("#opacity").to_be_visible()
        settled(page)
        with page.expect_download() as download:
            page.click("#save")
        assert download.value.suggested_filename == "harbour in rust.png"
        pastiche = Path(download.value.path()).read_bytes()
        assert Image.open(BytesIO(pastiche)).size == (96, 64)
        page.reload()
        page.expect("#strip .thumb").to_have_count(1)
        page.expect("[data-picker=content] [aria-pressed=true]").to_contain_text("harbour")
        page.go_back()
        page.click("#reset-all")
        page.expect("[data-picker=content] [aria-pressed=true]").to_have_text("coffee")
        page.click("#strip .thumb")
        page.expect("#result").to_contain_text("96 \u00d7 64 pixels")
        page.expect("[id=control-size]").to_have_value("96")
        page.click(".whose >> text=the next picture")
        page.expect("[id=control-size]").to_have_value("512")
        page.drop("#stage", pastiche=pastiche)  # brings its settings back
        page.expect("[id=control-size]").to_have_value("96")
        page.expect("[data-picker=content] [aria-pressed=true]").to_have_text("harbour")
        page.expect("[data-picker=style] [aria-pressed=true]").to_have_text("rust")
        page.click("#details > summary")
        page.expect("#details pre").to_contain_text("size=96")
        page.expect("#pixels").to_contain_text("96 \u00d7 64")
        if width < 500:  # without a secure origin, as a phone has it by share=true
            page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
            page.click("#copy")
            page.expect("#copy").to_have_text("Selected")
            assert page.evaluate("String(getSelection())").startswith("styletransfer train")
        settled(page)
        page.once("dialog", lambda dialog: dialog.accept())
        page.click("[data-picker=content] button >> text=Remove")
        page.expect("[data-picker=content] .tile[title='harbour.png']").to_have_count(0)
        page.expect("[data-picker=content] [aria-pressed=true]").to_have_text("coffee")
        page.expect("[data-control=content] :focus").to_have_count(1)  # inside the control
        page.enter(WEIGHT, "-1")
        page.expect(".error:visible").to_have_count(1)
        assert violations(page) == []


@pytest.mark.usefixtures("icons")
def test_preparing_the_next_run_leaves_the_present_one(fresh):
    """Check also that the head of the panel, which says whose settings it shows, stays in sight."""
    fresh.paint_tiny()
    fresh.expect(".whose [aria-pressed=true]").to_have_text("this picture")
    fresh.expect("#enqueue").to_be_hidden()
    for width in (320, 1280):
        fresh.set_viewport_size({"width": width, "height": 844})
        fresh.locator("#reset-all").scroll_into_view_if_needed()
        fresh.expect(".whose").to_be_in_viewport()
        box = fresh.locator(".whose .name").bounding_box()
        assert box["height"] < 30  # one line
        stage = fresh.locator("#stage").bounding_box()
        assert width > 320 or box["y"] >= stage["y"] + stage["height"]  # not on the picture
    fresh.click("[data-picker=content] .tile[title=rocket]")
    fresh.expect(".whose [aria-pressed=true]").to_have_text("the next picture")
    fresh.enter("steps", "10")
    fresh.click("#enqueue")
    fresh.expect("#queue").to_contain_text("Waiting: rocket")
    fresh.expect("#aim").to_contain_text("picture that is being painted stays as it is")
    fresh.click(".whose >> text=this picture")
    fresh.expect("[id=control-steps]").to_have_value("50000")
    fresh.expect("[data-picker=content] [aria-pressed=true]").to_have_text("coffee")
    fresh.expect("#status").to_contain_text("of 50000")
    fresh.enter("style_scale", "2")  # steers this run; the next run's settings stay
    fresh.expect("#details pre").to_contain_text("style_scale=2")
    fresh.click(".whose >> text=the next picture")
    fresh.expect("[id=control-steps]").to_have_value("10")
    fresh.expect("[id=control-style_scale]").to_have_value("1")
    assert fresh.complaints == []


def test_a_result_has_its_own_settings_status_and_photograph(fresh):
    fresh.click("[data-picker=content] .tile[title=rocket]")
    fresh.enter("size", "96")
    fresh.unfold()
    fresh.enter("steps", "1")
    fresh.click("#brush")
    fresh.locator("#stage").press(" ")
    fresh.click("#go")  # before the stroke is saved by itself
    fresh.expect("#status").to_contain_text("Finished after 1 step,")
    fresh.expect("#details pre").to_contain_text("protect=")
    fresh.expect("#whose").to_have_text("This command makes the same picture")
    fresh.click("#reset-all")
    fresh.expect("[data-picker=content] [aria-pressed=true]").to_have_text("coffee")
    fresh.click("#strip .thumb")
    fresh.expect("[data-picker=content] [aria-pressed=true]").to_have_text("rocket")
    fresh.expect("#details pre").to_contain_text("protect=")
    fresh.click("[data-picker=content] .tile[title=coffee]")
    fresh.unfold()
    fresh.last_long()
    fresh.paint()
    fresh.locator("#strip .thumb").last.click()
    fresh.expect("#status").to_contain_text("Finished after 1 step,")
    fresh.click("#queue >> text=Show")
    fresh.expect("#status").to_contain_text("of 50000")
    fresh.expect("#original").to_have_attribute("src", "/api/pictures/content-coffee?side=2048")


def test_a_stopped_run_that_goes_on_shows_its_settings(address, visited):
    with visited(address, made=None) as first:
        first.click("[data-picker=content] .tile[title=rocket]")
        first.paint_tiny()
        first.click("#stop")
        first.expect("#status").to_contain_text("Stopped")
        with visited(address, made=None) as page:
            page.click("#strip .thumb")
            page.expect("#go").to_have_text("Continue")
            page.click("#go")
            page.expect("#status").to_contain_text("Painting: step")
            page.expect("[data-picker=content] [aria-pressed=true]").to_have_text("rocket")
            page.expect("[id=control-size]").to_have_value("96")
            page.click(".whose >> text=the next picture")
            page.expect("[data-picker=content] [aria-pressed=true]").to_have_text("coffee")
            page.click("#stop")
            page.expect("#status").to_contain_text("Stopped")


def test_the_photograph_is_shown_until_a_slow_first_look_comes(page):
    held = []
    page.route(FIRST_LOOK, lambda route: held.append(route))
    slow = lambda route: (page.wait_for_timeout(700), route.continue_())  # noqa: E731
    page.route("**/api/pictures/content-*side=2048", slow)  # the stage is redrawn during the delay
    page.reload()
    page.expect("#canvas").to_have_js_property("width", 600)  # the width of coffee
    held[-1].continue_()


def test_a_film_is_painted_and_played(fresh, tmp_path):
    make(tmp_path / "walk.mp4", [picture(seed, 32, 48) for seed in range(5)], sound=("aac",))
    fresh.set_input_files("[aria-label='File for Photograph']", tmp_path / "walk.mp4")
    fresh.enter("size", "96")
    begun = "{ status: 'painting', kind: 'film', step: null, steps: null }"
    said = f"import('/static/transport.js').then(({{ statusText }}) => statusText({begun}))"
    assert fresh.evaluate(said) == "Painting"  # before its first frame
    fresh.expect("#details pre").to_contain_text("styletransfer apply")
    names = "(all) => all.map((one) => one.dataset.control)"
    rows = fresh.locator(".control:visible").evaluate_all(names)
    acting = ["content", "style", "size", WEIGHT, "style_scale", "color", "color_strength"]
    assert rows == acting
    fresh.expect("#looks, #more, #brush").to_have_count(0)
    fresh.click("#compare")
    fresh.click("#go")
    fresh.expect("#status").to_contain_text("Finished after 5 frames")
    fresh.expect("#stage video").to_have_count(1)
    fresh.expect("#before").to_be_hidden()
    fresh.expect("#compare").to_have_count(0)
    plays = """async (film) => {
      await film.play();
      await new Promise((resolve) => (film.ontimeupdate = () => film.currentTime && resolve()));
      return film.videoWidth;
    }"""
    assert fresh.locator("#stage video").evaluate(plays) == 96
    with fresh.expect_download() as download:
        fresh.click("#save")
    with Film(download.value.path()) as film:
        assert len(list(film.frames())) == 5
    fresh.expect("#pixels").to_have_text("96 \u00d7 64 pixels; film: 48 \u00d7 32")
    fresh.expect("#result a").to_have_text(["Film"])
    fresh.expect("#result a").to_have_attribute("href", re.compile("/film"))
    by_painted_frames(fresh, tmp_path / "walk.mp4")
    assert fresh.complaints == []


def by_painted_frames(page, film):
    """Look for two frames of a film, save and paint them, add both, and paint the film by them."""
    page.click(".own > summary")
    player = page.locator(".film video")
    paintings = []
    for seconds in (0.06, 0.14):
        player.evaluate(f"(video) => {{ video.currentTime = {seconds} }}")
        page.expect(".film a").to_have_attribute("download", f"walk {seconds}s.png")
        with page.expect_download() as saved:
            page.click("text=Save this frame")
        with Film(film) as opened, Image.open(saved.value.path()) as image:
            own = opened.frame(f"{seconds}s").image[0].permute(1, 2, 0) * 255
            assert abs(own.numpy() - np.asarray(image)).max() < 1
            painting = bytes_of(ImageOps.invert(image))
        paintings.append((saved.value.suggested_filename, painting))
    page.drop(".film", **{name.removesuffix(".png"): data for name, data in paintings[::-1]})
    page.expect(".film .caption").to_have_text(["0.06 s", "0.14 s"])
    page.expect("#details pre").to_contain_text(re.compile("film .*:0.06s.*:0.14s"))
    page.click("#go")
    page.expect("#status").to_contain_text("Finished after 5 frames")
    page.locator(".film button >> text=Remove").first.click()
    page.expect(".film .caption").to_have_text(["0.14 s"])
    page.click("#undo")
    page.expect(".film .caption").to_have_text(["0.06 s", "0.14 s"])
    for _ in range(2):
        page.locator(".film button >> text=Remove").first.click()
    page.expect("#details pre").to_contain_text("styletransfer apply")


def test_run_outlives_its_tab_and_two_tabs_show_the_same(address, visited):
    """Check also that an edit that the server could not be told is made once it answers again."""
    with visited(address) as page:
        page.paint_tiny()
    with visited(address) as one:
        other = visit(one.context, address)
        for page in (one, other):
            page.expect("#go").to_have_text("Pause")
            page.expect("#status").to_contain_text("step ")
        one.route("**/api/queue/*/steer", lambda route: route.abort())
        one.enter(WEIGHT, "2")
        one.wait_for_timeout(400)
        one.expect(f"[id='control-{WEIGHT}']").to_have_value("2")
        one.unroute("**/api/queue/*/steer")
        other.expect(f"[id='control-{WEIGHT}']").to_have_value("2")
        other.click("#stop")
        # On a slow machine the run may have settled before.
        one.expect("#status").to_contain_text(re.compile("Stopped|Finished"))


def test_every_slider_changes_the_sketch_and_it_is_kept(fresh):
    """Check the newcomer's way: a photograph, a slider, the sketch kept; painted, and saved."""
    fresh.drop("#stage", harbour=png(96, 64, "navy"))
    fresh.expect("[data-picker=content] [aria-pressed=true]").to_have_text("harbour")
    fresh.enter("size", "96")
    idle = "() => document.getElementById('stage').ariaBusy !== 'true'"
    for slider in (f"[data-control='{WEIGHT}'] input", "[data-control=style_scale] input"):
        with fresh.expect_response(FIRST_LOOK):
            fresh.locator(slider).first.press("End")
        fresh.wait_for_function(idle)
    with fresh.expect_response(FIRST_LOOK) as looked:
        fresh.select_option("#control-color", "content_luminance")
    fresh.wait_for_function(IS_SHOWN, arg=looked.value.url)
    fresh.click("#keep")
    fresh.expect("#status").to_have_text("Sketch, kept")
    fresh.expect("#details pre").to_contain_text("styletransfer apply")
    fresh.expect("#details pre").to_contain_text("strength=0.115")
    fresh.expect("#strip .thumb").to_have_count(1)
    buttons = fresh.locator("#transport .actions > *:visible")
    buttons.nth(2).wait_for()
    assert buttons.all_text_contents()[:3] == ["Paint", "Save", "Share"]
    fresh.unfold()
    fresh.enter("steps", "2")
    fresh.click("#go")
    fresh.expect("#status").to_contain_text("Finished after 2 steps")
    with fresh.expect_download() as download:
        fresh.click("#save")
    assert download.value.suggested_filename == "harbour in oil.png"
    assert fresh.complaints == []


def test_a_photograph_is_painted_as_another_one_was(page):
    page.drop("[data-picker=style]", hand=png(96, 64, "navy"))
    page.expect("[data-picker=style] [aria-pressed=true]").to_have_text("hand")
    page.click(".own > summary")
    page.drop("[data-picker=style_source]", other=png(96, 64, "sienna"))
    page.expect("[data-picker=style_source] [aria-pressed=true]").to_have_text("other")
    page.expect("#details pre").to_contain_text("style_source=")
    page.expect("#fits").to_have_text("")
    page.expect("#looks, #keep").to_have_count(0)
    page.expect("#control-color").to_have_value("style")
    settled(page)
    page.click("[data-picker=style_source] .tile[title=coffee]")  # of nearly the same shape
    page.expect("#fits").to_contain_text("different things")
    page.click("[data-picker=style_source] .tile[title='other.png']")
    page.enter("size", "96")
    page.click("#go")
    page.expect("#status").to_contain_text("Finished after 5 steps")
    page.click("[data-picker=style] .tile[title=oil]")  # nobody has painted that
    page.expect("#details pre").not_to_contain_text("style_source=")
    page.expect("#looks").to_have_count(1)
    page.click("[data-picker=style] .tile[title='hand.png']")  # its photograph comes back with it
    page.expect("#details pre").to_contain_text("style_source=")
    page.click("[data-picker=style_source] [aria-pressed=true]")
    page.click("[data-picker=style] .tile[title=oil]")
    page.click("[data-picker=style] .tile[title='hand.png']")
    page.expect("#details pre").to_contain_text("style=/")
    page.expect("#details pre").not_to_contain_text("style_source=")


@pytest.mark.usefixtures("icons")
def test_a_look_leaves_what_a_person_has_set(page):
    page.unfold()
    page.enter("steps", "33")
    page.expect("#looks [aria-pressed=true]").to_have_text("painted")
    page.click("#looks >> text=bold")
    page.expect("#details pre").to_contain_text("match_weight=2")
    page.click("#looks >> text=painted")
    page.expect("#details pre").not_to_contain_text("match_weight=2")
    page.expect("[id=control-steps]").to_have_value("33")
    page.click("#reset-all")
