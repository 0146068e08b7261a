public import ByteCoding

/// Parts of pages that several consoles have.
public enum ConsoleParts {
  /// The number of rows of a page.
  public static let rows = 50

  /// Returns a cell with a text in code, of which a page shows the beginning.
  public static func code(_ text: String?, length: Int = .max) -> ConsoleTable.Cell {
    guard let text else { return ConsoleTable.Cell(nil as String?) }
    let shown = Shown.text(text)
    let tone: HTML = length == .max ? .nothing : #" class="nowrap""#
    return ConsoleTable.Cell(text, #"<code\#(tone) title="\#(shown)">\#(String(shown.prefix(length)))</code>"#)
  }

  /// Returns a field of a form that filters a list.
  public static func field(_ name: String, _ label: String, _ query: ConsoleForm, isSearch: Bool = false) -> HTML {
    """
    <label>\(label)<input type="\(isSearch ? "search" : "text")" name="\(name)" value="\(query[name] ?? "")" \
    maxlength="128" spellcheck="false"></label>
    """
  }

  /// Returns a choice of a form that filters a list. The first one selects everything.
  public static func choice(
    _ name: String, _ label: String, _ choices: [(value: String, label: String)], _ query: ConsoleForm
  ) -> HTML {
    let options = ([("", "any")] + choices).map { value, label -> HTML in
      let selected: HTML = query[name] ?? "" == value ? " selected" : .nothing
      return #"<option value="\#(value)"\#(selected)>\#(label)</option>"#
    }
    return #"<label>\#(label)<select name="\#(name)">\#(options)</select></label>"#
  }

  /// Returns a form that filters the list at `path`.
  ///
  /// - Parameter sort: The order that the form keeps.
  public static func filters(_ path: String, _ fields: [HTML], sort: ConsoleSort? = nil) -> HTML {
    """
    <form class="filters card" method="get" action="\(path)" role="search">\(fields)\(sort?.field ?? .nothing)<button>Filter</button>
    <a href="\(path)">Reset</a></form>
    """
  }

  /// Returns the links to the first and the next page of a list.
  public static func pages(_ path: String, _ filters: [(name: String, value: String?)], after: String?, next: String?)
    -> HTML
  {
    guard after != nil || next != nil else { return .nothing }
    let first: HTML =
      after == nil ? .nothing : #"<a href="\#(path)\#(ConsoleForm.query(filters))">First page</a>"#
    let further: HTML =
      if let next {
        #"<a href="\#(path)\#(ConsoleForm.query(filters + [("after", next)]))" rel="next">Next page</a>"#
      } else {
        .nothing
      }
    return #"<nav class="pages" aria-label="Pages of the list">\#(first)\#(further)</nav>"#
  }

  /// Returns a list of names and values. Unknown values are left out.
  public static func list(_ entries: [(name: String, value: HTML?)]) -> HTML {
    let lines = entries.compactMap { name, value -> HTML? in value.map { "<dt>\(name)</dt><dd>\($0)</dd>" } }
    return "<dl>\(lines)</dl>"
  }

  /// Returns the words of an option and its value; none for no value.
  public static func option(_ name: String, _ value: String?) -> [String] {
    // A value with a dash in front would be read as another option.
    value.map { $0.hasPrefix("-") ? ["\(name)=\($0)"] : [name, $0] } ?? []
  }
}
