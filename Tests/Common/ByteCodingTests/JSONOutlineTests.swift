import ByteCoding
import Testing

@Suite("Parts of a JSON text")
struct JSONOutlineTests {
  private func hasNamesOnce(_ text: String) -> Bool { JSONOutline.hasNamesOnce(Array(text.utf8)) }

  @Test("Names are told from other texts by the colon, and escapes do not end a text")
  func parts() {
    let text = #"{"a\"b" : ["c:", {}], "d":"e\\"}"#
    let bytes = Array(text.utf8)
    let parts = JSONOutline(bytes).map { part in
      switch part {
      case .name(let range): "name " + String(decoding: bytes[range], as: UTF8.self)
      case .text(let range): "text " + String(decoding: bytes[range], as: UTF8.self)
      case .opening: "opening"
      case .closing: "closing"
      case .comma: "comma"
      }
    }
    #expect(
      parts == [
        "opening", #"name a\"b"#, "opening", "text c:", "comma", "opening", "closing", "closing", "comma", "name d",
        #"text e\\"#, "closing",
      ])
  }

  @Test(
    "A name twice in one object is found, however it is written",
    arguments: [
      #"{"a":1,"a":2}"#, #"{"a":1,"b":2,"\u0061":3}"#, #"[[{"x":{"\ud83d\ude00":1,"😀":2}}]]"#, #"{"\/":0,"/":0}"#,
      #"{"\"":0,"\u0022":1}"#,
    ])
  func repeated(_ text: String) { #expect(!hasNamesOnce(text)) }

  @Test(
    "Names of different objects or of different bytes are different",
    arguments: [
      #"[{"a":1},{"a":2}]"#, #"{"a":{"a":{"a":0}}}"#, "{\"\u{E9}\":1,\"e\u{301}\":2}", #"{"a":"a","b":["b"]}"#,
      #"{"\ud800":0,"\ud801":1}"#, "{\"K\":0,\"\u{212A}\":1}",
    ])
  func different(_ text: String) { #expect(hasNamesOnce(text)) }

  @Test(
    "Texts that are no JSON end without a trap",
    arguments: ["\"", "\"\\", "}}]]", "{\"a\":", "\"a\\u", ":::", "{\"\\u00\":0}"])
  func malformed(_ text: String) {
    #expect(hasNamesOnce(text))
    #expect(JSONOutline(Array(text.utf8)).reduce(0) { count, _ in count + 1 } <= text.utf8.count)
  }
}
