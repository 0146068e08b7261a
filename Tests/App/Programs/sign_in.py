"""sign_in.py: signs a person in at the pages of nanoidp, glewlwyd and oidc-provider-mock without a browser: fetches the
form, fills it in and posts it. glewlwyd's page is JavaScript; here its requests are made directly."""

import html.parser
import http.cookiejar
import json
import re
import ssl
import urllib.error
import urllib.parse
import urllib.request

from loopback import Failure

# An app's own address on this computer, as opposed to the provider's.
LOOPBACK = re.compile(r"http://(127\.0\.0\.1|\[::1\]):\d+/")


class Visitor:
    """What a browser is here: cookies, trust in one authority, and redirects up to the app's address."""

    def __init__(self, ca_file):
        trust = ssl.create_default_context(cafile=ca_file)
        self.opener = urllib.request.build_opener(
            urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()),
            urllib.request.HTTPSHandler(context=trust), NoRedirects(), urllib.request.ProxyHandler({}))

    def open(self, url, fields=None, document=None, method=None):
        """Returns the URL at the end of the redirects and the page there, which is None for the app's address."""
        data, headers = None, {"Accept": "text/html, application/json"}
        if fields is not None:
            data = urllib.parse.urlencode(fields).encode()
        if document is not None:
            data, headers["Content-Type"] = json.dumps(document).encode(), "application/json"
        for _ in range(10):
            request = urllib.request.Request(url, data, headers, method=method)
            try:
                response = self.opener.open(request, timeout=30)
            except urllib.error.HTTPError as error:
                if error.code not in (301, 302, 303, 307, 308):
                    text = error.read().decode(errors="replace")
                    raise Failure(f"{url.split('?')[0]} answers {error.code}: {text[:500]}",
                                  "check the request, the user and the client") from None
                url, data, method = urllib.parse.urljoin(url, error.headers["Location"]), None, None
                headers.pop("Content-Type", None)
                if LOOPBACK.match(url):
                    return url, None
                continue
            return url, response.read().decode(errors="replace")
        raise Failure(f"more than ten redirects, the last to {url.split('?')[0]}", "check the provider's settings")


class NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *arguments):
        return None


class Forms(html.parser.HTMLParser):
    """The forms of a page, each with its fields. A submit button is a field that `press` selects."""

    def __init__(self, page):
        super().__init__()
        self.forms = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "form":
            self.forms.append({"action": attributes.get("action") or "", "fields": {}, "buttons": []})
        elif self.forms and tag in ("input", "button") and attributes.get("name"):
            submit = attributes.get("type", "submit" if tag == "button" else "text") == "submit"
            pair = attributes["name"], attributes.get("value") or ""
            if submit:
                self.forms[-1]["buttons"].append(pair)
            else:
                self.forms[-1]["fields"][pair[0]] = pair[1]

    def with_field(self, name):
        return next((form for form in self.forms if name in form["fields"]), None)


def authorize(url, username, password, ca_file, visitor=None):
    """Signs in at the authorization URL `url`, or at the app's address that leads there, and returns the URL of the app
    to which the provider redirects. The cookies are those of `visitor`."""
    visitor = visitor or Visitor(ca_file)
    place, page = visitor.open(url)
    if "/login.html?" in place:
        place, page = visit_glewlwyd(visitor, url, place, username, password)
    elif page is not None:
        place, page = submit(visitor, place, page, username, password)
    if page is not None:
        raise Failure(f"the provider shows a page at {place.split('?')[0]}, and redirects nowhere",
                      "check user name and password; the page says: " + visible_text(page)[:300])
    return place


def approve_device(url, user_code, username, password, ca_file):
    """Approves the device grant of `user_code` at the verification page `url`."""
    visitor = Visitor(ca_file)
    place, page = visitor.open(with_query(url, user_code=user_code, code=user_code))
    if "/login.html" in place:
        return approve_at_glewlwyd(visitor, place, url, user_code, username, password)
    place, page = submit(visitor, place, page, username, password, user_code=user_code, action="authorize")
    return visible_text(page)


def submit(visitor, place, page, username, password, **more):
    """Fills in the form that asks for a user, whose field is `username` or `sub`."""
    forms = Forms(page)
    form = forms.with_field("username") or forms.with_field("sub")
    if form is None:
        raise Failure(f"{place.split('?')[0]} has no login form", "the page says: " + visible_text(page)[:300])
    known = {"username": username, "sub": username, "password": password, **more}
    fields = {name: known.get(name, value) for name, value in form["fields"].items()}
    fields.update({name: value for name, value in form["buttons"] if more.get(name) == value})
    return visitor.open(urllib.parse.urljoin(place, form["action"]) if form["action"] else place, fields)


def visit_glewlwyd(visitor, url, place, username, password):
    """Makes the requests of glewlwyd's login page: password, consent, and the way back."""
    query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(place).query))
    root = place.split("/login.html")[0]
    visitor.open(f"{root}/api/auth/", document={"username": username, "password": password})
    if query.get("client_id"):
        grant_scopes(visitor, root, query["client_id"], query.get("scope", "openid"))
    return visitor.open(with_query(query.get("callback_url") or url, g_continue=""))


def grant_scopes(visitor, root, client, scope):
    visitor.open(f"{root}/api/auth/grant/{urllib.parse.quote(client)}", document={"scope": scope}, method="PUT")


def approve_at_glewlwyd(visitor, place, url, user_code, username, password):
    place, page = visit_glewlwyd(visitor, with_query(url, code=user_code), place, username, password)
    for _ in range(3):
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(place).query))
        if query.get("prompt", "").startswith("deviceComplete") or not query.get("client_id"):
            break
        place, page = visit_glewlwyd(visitor, with_query(url, code=user_code), place, username, password)
    return urllib.parse.urlsplit(place).query


def with_query(url, **fields):
    parts = urllib.parse.urlsplit(url)
    known = dict(urllib.parse.parse_qsl(parts.query, keep_blank_values=True))
    return urllib.parse.urlunsplit(parts._replace(query=urllib.parse.urlencode({**known, **fields})))


def visible_text(page):
    """The text of a page, without markup and scripts."""
    page = re.sub(r"(?s)<(script|style).*?</\1>", " ", page or "")
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())
