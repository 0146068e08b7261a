import ByteCoding
import Testing

@testable import ConsoleServing

@Suite("Lists that are sorted by links in the head of their table")
struct ConsoleSortTests {
  private func sort(_ query: String, standard: String? = "opened") throws -> ConsoleSort {
    let form = try #require(ConsoleForm(query.utf8))
    return ConsoleSort(
      "/list", [("time", "opened"), ("name", "name")], standard: standard, form, keeping: [("key", form["key"])])
  }

  private func head(_ query: String) throws -> String {
    ConsoleTable(
      "List", ["time", "name", ""], [[.init("1"), .init("2"), .init("3")]], whenEmpty: "none", sort: try sort(query)
    ).markup.text
  }

  @Test("A link sorts by its column, and the second one turns the order around; filters stay")
  func links() throws {
    let standard = try head("key=a%26b")
    #expect(
      standard.contains(#"scope="col" aria-sort="ascending"><a href="/list?key=a%26b&amp;sort=-opened">time</a></th>"#))
    #expect(standard.contains(#"scope="col"><a href="/list?key=a%26b&amp;sort=name">name</a></th>"#))
    #expect(standard.contains(#"<th role="columnheader" scope="col"></th>"#))
    let descending = try head("sort=-name")
    #expect(descending.contains(#"aria-sort="descending"><a href="/list?sort=name">name</a>"#))
    #expect(descending.contains(#"scope="col"><a href="/list">time</a>"#))
    #expect(descending.ranges(of: "aria-sort").count == 1)
  }

  @Test("Only known columns are a choice, and the standard order is none")
  func choices() throws {
    for (query, choice) in [
      ("", nil), ("sort=opened", nil), ("sort=-opened", "-opened"), ("sort=name", "name"), ("sort=--name", nil),
      ("sort=%22%3E", nil), ("sort=Name", nil),
    ] as [(String, String?)] { #expect(try sort(query).choice == choice, "\(query)") }
    #expect(try sort("sort=name").field.text == #"<input type="hidden" name="sort" value="name">"#)
    #expect(try sort("").field.text.isEmpty)
    #expect(try sort("", standard: nil).choice == nil)
  }

  @Test("A table that cannot be sorted has no links in its head")
  func unsorted() {
    let text = ConsoleTable("List", ["time"], [[.init("1")]], whenEmpty: "none").markup.text
    #expect(!text.contains("<a") && !text.contains("aria-sort") && !text.contains("sorted"))
  }
}
