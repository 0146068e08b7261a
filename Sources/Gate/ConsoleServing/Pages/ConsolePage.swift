public import ByteCoding

/// A page of a console, before the frame around it.
public struct ConsolePage: Sendable {
  public var title: String
  /// The command that shows or does the same, to copy.
  public var command: String?
  /// Forms and acts, which stay while `content` is replaced.
  public var head: HTML
  /// What the page shows. It is fetched again every few seconds if the page is live.
  public var content: HTML
  public var isLive: Bool
  /// The acts that lead back to the page, which then says what is done.
  public var acts: [ConsoleAct]
  /// What the page shows as a table, for a file.
  public var table: ConsoleTable?
  /// What the page shows as JSON, for a file.
  public var json: String?

  public init(
    _ title: String, command: String? = nil, head: HTML = .nothing, content: HTML, isLive: Bool = false,
    acts: [ConsoleAct] = [], table: ConsoleTable? = nil, json: String? = nil
  ) {
    (self.title, self.command, self.head, self.content) = (title, command, head, content)
    (self.isLive, self.acts, self.table, self.json) = (isLive, acts, table, json)
  }
}

/// Why a page cannot be shown, or an act was not done. The texts are for people.
public struct ConsoleFault: Error, Sendable, Hashable {
  /// The status of the answer, 400 to 599.
  public let status: Int
  public let text: String
  public let hint: String?
  /// Whether the page may come back by itself: it asks again until there is an answer.
  let isPassing: Bool

  /// - Parameter isPassing: By default a fault of the service. `false` for what must not be asked again and again.
  public init(_ status: Int, _ text: String, hint: String? = nil, isPassing: Bool? = nil) {
    (self.status, self.text, self.hint) = (status, text, hint)
    self.isPassing = isPassing ?? (status >= 500)
  }
}

/// An entry of the navigation.
public struct ConsoleSection: Sendable {
  public let path: String
  public let title: String

  public init(_ path: String, _ title: String) { (self.path, self.title) = (path, title) }
}

/// An act that a person can do at a console.
public struct ConsoleAct: Sendable {
  /// The name in the path and in the address after the act.
  public let name: String
  /// The lowest role that may do it.
  public let role: ConsoleRole
  /// What the page says when it is done.
  public let done: String

  public init(_ name: String, _ role: ConsoleRole, done: String) {
    (self.name, self.role, self.done) = (name, role, done)
  }
}

/// What a page knows about the person who looks at it.
public struct ConsoleViewer: Sendable {
  public let role: ConsoleRole
  /// The name of the person, at most 384 bytes; `nil` on the loopback, where the service knows the user.
  public let person: String?
  let formToken: String

  init(role: ConsoleRole, formToken: String, person: String? = nil) {
    (self.role, self.formToken, self.person) = (role, formToken, person)
  }

  /// Returns a form with a button that does an act; nothing if the role does not allow it.
  ///
  /// - Parameters:
  ///   - values: The fields of the act.
  ///   - back: The path of the page to which the browser returns.
  ///   - question: A sentence that the person reads before the button; `nil` for an act without a question.
  public func form(
    _ act: ConsoleAct, _ label: String, values: [(name: String, value: String)], back: String, question: String? = nil,
    isDangerous: Bool = false
  ) -> HTML {
    guard role >= act.role else { return .nothing }
    let hidden = (values + [("token", formToken), ("back", back)]).map { name, value -> HTML in
      #"<input type="hidden" name="\#(name)" value="\#(value)">"#
    }
    let tone = isDangerous ? "danger" : "plain"
    let form: HTML = """
      <form method="post" action="/act/\(act.name)">\(hidden)<button class="\(tone)">\(label)</button></form>
      """
    guard let question else { return form }
    return """
      <details class="act"><summary class="button \(tone)">\(label)…</summary><div class="question"><p>\(question)</p>\(form)\
      </div></details>
      """
  }
}

/// The pages and acts of a service.
public protocol ConsolePages: Sendable {
  /// The name of the service.
  var name: String { get }
  /// The navigation. The first path is `/`.
  var sections: [ConsoleSection] { get }
  var acts: [ConsoleAct] { get }
  /// The lowest role that may export what a page shows.
  var exportRole: ConsoleRole { get }

  /// Returns the page at `path`; `nil` if there is none.
  func page(at path: String, _ query: ConsoleForm, for viewer: ConsoleViewer) async throws(ConsoleFault) -> ConsolePage?

  /// Does an act, which the role of `viewer` allows.
  func perform(_ act: ConsoleAct, _ form: ConsoleForm, for viewer: ConsoleViewer) async throws(ConsoleFault)
}

extension ConsolePages {
  /// Everything that looks at a page may export it.
  public var exportRole: ConsoleRole { .view }
}
