internal import ByteCoding

/// The frame around the pages of a console.
struct ConsoleLayout {
  let pages: any ConsolePages
  let viewer: ConsoleViewer
  let path: String
  let query: String?

  static let icon = """
    <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path fill="#28705a" d="M2 15V7a6 6 0 0 1 12 0v8h-4V8a2 \
    2 0 0 0-4 0v7z"/></svg>
    """

  private static func head(_ title: String, _ further: HTML = .nothing) -> HTML {
    """
    <!doctype html>
    <html lang="en">
    <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>\(title)</title>
    <link rel="stylesheet" href="/console.css">
    <link rel="icon" href="/icon.svg">
    <script src="/console.js" defer></script>\(further)
    </head>
    """
  }

  /// The page for a browser without a session. The script sends the token in the fragment of the address.
  static func signInPage(_ name: String) -> String {
    let page: HTML = """
      \(head("Sign in · \(name)"))
      <body class="alone">
      <main>
      <h1>\(name) console</h1>
      <p id="sign-in" role="status">Open the address that the console command printed. It works once, in a browser with \
      scripts.</p>
      </main>
      </body>
      </html>

      """
    return page.text
  }

  /// The page after signing out.
  ///
  /// - Parameter isOver: Whether the process ends with the session, so that the page says how to begin again.
  static func signedOutPage(_ name: String, isOver: Bool) -> String {
    let rest: HTML =
      isOver
      ? "The console has ended: run the command again for a new address."
      : #"<a href="/">Sign in again</a>"#
    return lonePage("Signed out · \(name)", name, #"<p role="status">Signed out. \#(rest)</p>"#)
  }

  /// A page without navigation.
  ///
  /// - Parameters:
  ///   - next: The path of the page to which the browser goes by itself; `nil` to stay.
  ///   - isSignIn: Whether the script looks for a session that the browser has. A link of another site comes without its
  ///     cookie.
  static func lonePage(
    _ title: String, _ name: String, _ content: HTML, next: String? = nil, isSignIn: Bool = false
  ) -> String {
    let refresh: HTML = if let next { #"<meta http-equiv="refresh" content="0; url=\#(next)">"# } else { .nothing }
    let page: HTML = """
      \(head(title, refresh))
      <body class="alone">
      <main\(isSignIn ? " id=\"entrance\"" : .nothing)>
      <h1>\(name) console</h1>
      \(content)
      </main>
      </body>
      </html>

      """
    return page.text
  }

  func document(_ page: ConsolePage, done: String?) -> String {
    let notice: HTML =
      if let done { #"<p class="notice good" role="status">\#(done)</p>"# } else { .nothing }
    return frame(
      page.title,
      """
      \(notice)
      <div class="title"><h1>\(page.title)</h1>\(files(page))</div>
      <div class="tools">\(page.command.map(Self.command) ?? .nothing)\(page.isLive ? Self.liveSwitch : .nothing)</div>
      \(page.head)
      <div id="content"\(page.isLive ? " data-live" : .nothing)>
      \(page.content)
      </div>
      """)
  }

  /// - Parameter isPassing: Whether the page comes back by itself when the service answers again. Not for the answer to a
  ///   form, which a browser would send again.
  func fault(_ fault: ConsoleFault, isPassing: Bool = false) -> String {
    frame(
      "Not available",
      """
      <div class="title"><h1>Not available</h1></div>
      \(isPassing ? Self.liveSwitch : .nothing)
      <div id="content"\(isPassing ? " data-live=\"reload\"" : .nothing)>\(Self.notice(fault))</div>
      <p><a href="\(path.hasPrefix("/act/") ? "/" : path)">Try again</a></p>
      """)
  }

  static func notice(_ fault: ConsoleFault) -> HTML {
    let hint: HTML = if let hint = fault.hint { "<p>\(Shown.text(hint))</p>" } else { .nothing }
    return #"<div class="notice bad" role="alert"><strong>\#(Shown.text(fault.text))</strong>\#(hint)</div>"#
  }

  private static let liveSwitch: HTML = """
    <p class="live" hidden><label><input type="checkbox" id="live" checked> Live</label>
    <span id="live-state" role="status"></span></p>
    """

  private static func command(_ text: String) -> HTML {
    """
    <p class="command"><code id="command">\(Shown.text(text))</code>
    <button type="button" class="plain" data-copy="command" hidden>Copy</button></p>
    """
  }

  /// The links to what the page shows as files, with the same query.
  private func files(_ page: ConsolePage) -> HTML {
    guard viewer.role >= pages.exportRole else { return .nothing }
    let query = query.map { "?" + $0 } ?? ""
    let path = path == "/" ? "" : path
    let links: [HTML] = [("csv", "CSV", page.table != nil), ("json", "JSON", page.json != nil)].compactMap {
      ending, name, exists in
      exists && !path.isEmpty ? #"<a href="\#(path).\#(ending)\#(query)" download>\#(name)</a>"# : nil
    }
    return links.isEmpty ? .nothing : #"<span class="files">Export: \#(links)</span>"#
  }

  private func frame(_ title: String, _ content: HTML) -> String {
    let links = pages.sections.map { section -> HTML in
      let isHere = section.path == "/" ? path == "/" : path == section.path || path.hasPrefix(section.path + "/")
      let here: HTML = isHere ? #" aria-current="page""# : .nothing
      return #"<li><a href="\#(section.path)"\#(here)>\#(section.title)</a></li>"#
    }
    let person: HTML = if let person = viewer.person { "\(person) · " } else { .nothing }
    let document: HTML = """
      \(Self.head("\(title) · \(pages.name)"))
      <body>
      <a class="skip" href="#main">Skip to the content</a>
      <header>
      <p class="brand">\(pages.name)</p>
      <nav aria-label="Pages"><ul>\(links)</ul></nav>
      <form method="post" action="/sign-out"><input type="hidden" name="token" value="\(viewer.formToken)">\
      <span class="quiet">\(person)role \(viewer.role.rawValue)</span> <button class="plain">Sign out</button></form>
      </header>
      <main id="main" tabindex="-1">
      \(content)
      </main>
      </body>
      </html>

      """
    return document.text
  }
}
