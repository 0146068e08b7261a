import ByteCoding
import Testing

@Suite("JSON strings")
struct JSONStringTests {
  @Test(
    "A text that was written is read back, and nothing after it is touched",
    arguments: [
      "", "plain", "a\"b\\c", "\n\r\t", "\u{0}\u{1F}\u{7F}\u{9B}", "\u{2028}\u{2029}", "é 🚪", "\\u0041", "\",\"a\":\"b",
    ])
  func roundTrip(_ text: String) {
    var bytes: [UInt8] = []
    JSONText.append(text, to: &bytes)
    bytes += ",rest".utf8
    var rest = bytes[...]
    #expect(JSONText.takeString(from: &rest) == text)
    #expect(rest.elementsEqual(",rest".utf8))
  }

  @Test(
    "What does not begin with a whole string is left as it is",
    arguments: ["", "1", "true", "\"", "\"open", "\"end\\", "\"\\u12", "\"\\uD800\""])
  func otherText(_ text: String) {
    var rest = Array(text.utf8)[...]
    #expect(JSONText.takeString(from: &rest) == nil)
    #expect(rest.elementsEqual(text.utf8))
  }

  @Test("A name is written in quotation marks, behind its prefix")
  func names() {
    var bytes: [UInt8] = []
    JSONText.append("level", after: "metadata.", to: &bytes)
    JSONText.append("path", after: "", to: &bytes)
    #expect(bytes.elementsEqual("\"metadata.level\"\"path\"".utf8))
  }

  @Test("Each character is escaped or not as at the beginning, at each place of a text of each length")
  func places() {
    let characters = (0..<0x100).map { Character(Unicode.Scalar(UInt8($0))) } + ["\u{2028}", "\u{2030}", "é", "🚪"]
    for character in characters {
      let alone = JSONText.quote(String(character)).dropFirst().dropLast()
      for count in [1, 7, 8, 9, 15, 16, 17, 25] {
        for place in 0..<count {
          let (before, after) = (String(repeating: "x", count: place), String(repeating: "y", count: count - place - 1))
          let text = before + String(character) + after
          #expect(JSONText.quote(text) == "\"\(before)\(alone)\(after)\"", "\(text.debugDescription)")
        }
      }
    }
  }

  @Test("An object has its members in their order", arguments: [0, 1, 2])
  func objects(_ count: Int) {
    let object =
      count == 0
      ? JSONText.object([:]) : count == 1 ? JSONText.object(["a": "b\""]) : JSONText.object(["a": "", "b": "c"])
    #expect(object == ["{}", #"{"a":"b\""}"#, #"{"a":"","b":"c"}"#][count])
  }
}
