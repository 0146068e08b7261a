import ByteCoding
import Testing

@Suite("Strict JSON grammar")
struct JSONGrammarTests {
  static let good = [
    "{}", "[]", " {\"a\":1}\r\n\t", #"[1,2.5e-3,-0,1E+2,true,false,null,"x\u00e9\ud83d\ude00\/"]"#, "0", "\"\"",
    #"{"a":{"a":[{},[],{"a":[]}]},"b":[[1]]}"#, "{\"a\" : 1 , \"b\":[ ]\n}", nested(JSONGrammar.deepest),
  ]

  static let bad = [
    "", "{", "[1,]", "[,]", #"{"a":1,}"#, #"{"a"}"#, "{a:1}", "{'a':1}", "[}", "{\"a\":1]", "[1 2]", "{} {}",
    "01", "1.", "-", "+1", ".5", "1e", "NaN", "nul", "// c\n{}", "\u{FEFF}{}", "\"\n\"", #""\x""#, #""\u00g0""#,
    nested(JSONGrammar.deepest + 1),
  ]

  /// Escapes of one half of a surrogate pair, which encode no character.
  static let loneSurrogates = [#""\ud800""#, #""\udc00""#, #""\ud800\u0041""#, #""\ud800x""#]

  /// Objects whose last name repeats the first one, partly in another encoding.
  static let repeated = [
    #"{"a":1,"a":2}"#, #"{"a":1,"b":2,"\u0061":3}"#, "{\"\u{E9}\":1,\"e\u{301}\":2}", #"{"x":[{"a":1,"a":1}]}"#,
  ]

  private static func nested(_ depth: Int) -> String {
    String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
  }

  @Test("JSON texts of RFC 8259 are accepted, their prefixes are refused", arguments: good)
  func accepted(_ text: String) {
    let bytes = Array(text.utf8)
    #expect(JSONGrammar.accepts(bytes))
    guard let last = bytes.lastIndex(where: { $0 > 0x20 }), last > 0 else { return }
    for end in 0..<last { #expect(!JSONGrammar.accepts(Array(bytes[..<end])), "\(end)") }
  }

  @Test("Other texts, lone surrogates and repeated names are refused", arguments: bad + loneSurrogates + repeated)
  func refused(_ text: String) { #expect(!JSONGrammar.accepts(Array(text.utf8))) }

  @Test("Bytes that are not UTF-8 are refused")
  func encodings() {
    #expect(!JSONGrammar.accepts([0x22, 0xFF, 0x22]))
    #expect(!JSONGrammar.accepts([0x22, 0xC0, 0xAF, 0x22]))
    let units = Array("{\"a\":1}".utf16)
    #expect(!JSONGrammar.accepts(units.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }))
    #expect(!JSONGrammar.accepts(units.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }))
  }

  /// Objects with one name, and whether it is accepted.
  static let names = [
    (String(repeating: "a", count: 256), true), (String(repeating: "a", count: 257), false),
    (String(repeating: #"\u0061"#, count: 256), true), (String(repeating: #"\u0061"#, count: 257), false),
    ("\u{E9}", false), (#"\u00e9"#, false), (#"\ud83d\ude00"#, false), (#"\u0000"#, true),
    // By canonical equivalence the Kelvin sign is a K, so that `String` compares the two names as equal.
    ("public\u{212A}ey", false), (#"public\u212aey"#, false),
    ("a" + String(repeating: "\u{301}", count: 13_500) + String(repeating: "\u{323}", count: 13_500), false),
  ]

  @Test("A name is ASCII of at most 256 bytes after its escapes are decoded", arguments: names)
  func acceptsName(_ name: String, isAccepted: Bool) {
    #expect(JSONGrammar.accepts(Array("{\"\(name)\":1}".utf8)) == isAccepted)
    #expect(JSONGrammar.accepts(Array("[{\"a\":{\"\(name)\":1}}]".utf8)) == isAccepted)
    // A value is not kept or compared, so it may be any text.
    #expect(JSONGrammar.accepts(Array("{\"a\":\"\(name)\"}".utf8)))
  }

  @Test("An object has at most 1,000 members unless the caller says otherwise")
  func members() {
    func object(_ count: Int) -> [UInt8] { Array("{\((0..<count).map { "\"\($0)\":0" }.joined(separator: ","))}".utf8) }
    #expect(JSONGrammar.accepts(object(1000)) && !JSONGrammar.accepts(object(1001)))
    #expect(JSONGrammar.accepts(object(1001), within: .none))
    #expect(JSONGrammar.accepts(object(64), within: .request) && !JSONGrammar.accepts(object(65), within: .request))
  }

  @Test("A request has at most 256 values, of all depths")
  func values() {
    func list(_ count: Int) -> [UInt8] { Array("[[\((1...count).map { "\($0)" }.joined(separator: ","))]]".utf8) }
    #expect(JSONGrammar.accepts(list(254), within: .request) && !JSONGrammar.accepts(list(255), within: .request))
    #expect(JSONGrammar.accepts(list(5000)))
  }
}
