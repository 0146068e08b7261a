import Foundation
import Testing

@testable import Settings

@Suite("Finding the configuration, and messages with hints")
struct SearchTests {
  @Test("The variable comes before the installed file, which counts only if it exists")
  func order() throws {
    let space = try Workspace()
    try space.write("version: 1\n", to: "installed.yaml")
    let (installed, missing) = (space.folder + "/installed.yaml", space.folder + "/missing.yaml")
    func file(_ environment: [String: String], _ standard: String) -> String? {
      ConfigurationSearch(environment: environment, standardFile: standard).file
    }
    #expect(file(["SALLYPORT_CONFIG": "own.yaml"], installed) == "own.yaml")
    // Container tools pass unset variables as empty ones.
    #expect(file(["SALLYPORT_CONFIG": ""], installed) == installed)
    #expect(file([:], installed) == installed)
    #expect(file([:], missing) == nil)
    #expect(file(["SALLYPORT_CONFIG": "own.yaml"], missing) == "own.yaml")
  }

  @Test("A hint follows its message, and the last of several in a row that share it")
  func hints() {
    let messages = [
      HintedMessage("error: a", hint: "x"), .init("error: b", hint: "x"), .init("error: c", hint: nil),
      .init("error: d", hint: "y"), .init("warning: e", hint: "x"),
    ]
    #expect(
      HintedMessage.lines(messages) == """
        error: a
        error: b
        hint: x
        error: c
        error: d
        hint: y
        warning: e
        hint: x
        """)
    #expect(HintedMessage.lines([]) == "")
  }
}
