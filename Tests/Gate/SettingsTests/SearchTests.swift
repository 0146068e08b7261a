import Commands
@testable import ConfigurationEngine
import Foundation
import Testing

@testable import Settings

@Suite("Finding the configuration, and messages with hints")
struct SearchTests {
  @Test("The variable comes before the installed file, which counts only if it exists")
  func order() throws {
    let space = try Workspace()
    let (machine, empty) = (space.folder + "/machine", space.folder + "/empty")
    let installed = machine + "/etc/sallyport/sallyport.yaml"
    try space.write("version: 1\n", to: "machine/etc/sallyport/sallyport.yaml")
    func search(_ named: String?, _ root: String?) -> ConfigurationSearch {
      ConfigurationSearch(
        environment: ["SALLYPORT_CONFIG": named, "SALLYPORT_ROOT": root].compactMapValues(\.self))
    }
    #expect(search("own.yaml", machine).file == "own.yaml")
    // Container tools pass unset variables as empty ones.
    #expect(search("", machine).file == installed)
    #expect(search(nil, machine).file == installed)
    #expect(search(nil, empty).file == nil)
    #expect(search(nil, empty).advice.hasSuffix("or create \(empty)/etc/sallyport/sallyport.yaml"))
    #expect(search("own.yaml", empty).file == "own.yaml")
    #expect(search(nil, nil).standardFile == "/etc/sallyport/sallyport.yaml")
  }

  @Test("A hint follows its message, and the last of several in a row that share it")
  func hints() {
    let messages: [(Message, hint: String?)] = [
      (.error("a"), "x"), (.error("b"), "x"), (.error("c"), nil), (.error("d"), "y"), (.warning("e"), "x"),
    ]
    #expect(
      Message.hinted(messages).map(\.line) == [
        "error: a", "error: b", "hint: x", "error: c", "error: d", "hint: y", "warning: e", "hint: x",
      ])
    #expect(Message.hinted([]).isEmpty)
  }
}
