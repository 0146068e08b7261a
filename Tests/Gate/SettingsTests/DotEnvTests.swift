@testable import ConfigurationEngine
import Testing

@testable import Settings

@Suite("A .env file is parsed as container tools parse it")
struct DotEnvTests {
  @Test(
    "A line sets its name to its value",
    arguments: [
      ("A=1", "1"), ("export A=1", "1"), ("  export\tA = 1  ", "1"), ("A=", ""), ("A=# none", ""),
      ("A=1 # one", "1"), ("A=1\t# one", "1"), ("A=a#b", "a#b"), ("A=a b", "a b"), ("A=a=b", "a=b"),
      ("A='a # b'", "a # b"), ("A='a\\n'", "a\\n"), ("A=\"a\\n\\\"b\\\\\"", "a\n\"b\\"), ("A=\"x\" # c", "x"),
      ("A=\"\\$HOME\"", "$HOME"), ("A=$HOME", "$HOME"), ("A='' ", ""), ("A=é", "é"), ("A=1\r", "1"),
      ("\u{FEFF}A=1", "1"),
    ])
  func value(_ line: String, _ value: String) {
    let dotenv = DotEnv(text: line)
    #expect(dotenv.variables["A"]?.value == value)
    #expect(dotenv.faults.isEmpty)
  }

  @Test("Blank lines and comments count as lines and set nothing")
  func lines() {
    let dotenv = DotEnv(text: "\n# A=0\r\n   \n  # B\nA=1\n")
    #expect(dotenv.variables == ["A": DotEnv.Variable(value: "1", line: 5)])
    #expect(dotenv.faults.isEmpty)
  }

  @Test("A quoted value may span several lines, and the next name is found after it")
  func severalLines() {
    let dotenv = DotEnv(text: "A=\"-----BEGIN\nx=y\n-----END\" # key\nB='1\n2'\nC=3\n")
    #expect(dotenv.variables.mapValues(\.value) == ["A": "-----BEGIN\nx=y\n-----END", "B": "1\n2", "C": "3"])
    #expect(dotenv.variables["C"]?.line == 6)
    #expect(dotenv.faults.isEmpty)
  }

  @Test("An unclosed quote is an error of its line only")
  func openQuote() {
    let dotenv = DotEnv(text: "A=\"x\nB=1\n" + String(repeating: "C\n", count: 200))
    #expect(dotenv.variables.mapValues(\.value) == ["B": "1"])
    #expect(dotenv.faults.count == 201)
  }

  @Test(
    "A number sign directly after a quote does not start a comment",
    arguments: ["A='x'#c", "A=\"x\"#c", "A=\"x\\", "A=\"x\\\""]
  )
  func wrongQuotes(_ line: String) {
    let dotenv = DotEnv(text: line)
    #expect(dotenv.variables.isEmpty)
    #expect(dotenv.faults.count == 1)
  }
}
