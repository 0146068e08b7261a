import Testing
import Transport

@testable import TransportEngine

@Suite struct HeaderFieldsTests {
  private static func fields(_ lines: [String]) throws -> HeaderFields {
    try #require(RequestHead.parse("GET / HTTP/1.1\r\n" + lines.map { $0 + "\r\n" }.joined() + "\r\n").head).headers
  }

  private static func text(of fields: HeaderFields, where isKept: (HeaderFields.Line) -> Bool = { _ in true })
    -> [String]
  {
    var pieces: [String] = []
    fields.forEachRun(where: isKept) { pieces.append(String(decoding: $0, as: UTF8.self)) }
    return pieces.filter { !$0.isEmpty }
  }

  /// Lines of one field, the first as `HeaderFields` keeps it.
  fileprivate static let forms = ["X-A: a b", "X-A:a b", "X-A:\ta b", "X-A:  a b", "X-A: a b ", "X-A:a b\t "]

  @Test("The form of a line changes nothing, wherever it is", arguments: HeaderFieldsTests.forms)
  func differentForms(_ form: String) throws {
    let usual = ["Host: h", "Y: ", "Z: z"]
    for place in 0...usual.count {
      var (lines, expected) = (usual, usual)
      lines.insert(form, at: place)
      expected.insert(Self.forms[0], at: place)
      let fields = try Self.fields(lines)
      #expect(fields == (try Self.fields(expected)), "\(lines)")
      #expect(Self.text(of: fields) == [expected.map { $0 + "\r\n" }.joined()], "\(lines)")
      #expect(fields.first("X-a") == "a b" && fields.first("y") == "" && fields.first("Z") == "z")
      #expect(fields.fields == HeaderFields(fields.fields).fields)
    }
  }

  @Test("Lines that follow each other are one piece", arguments: 0..<32)
  func runs(_ kept: Int) throws {
    let names = ["Host", "A", "Bb", "Ccc", "D"]
    let fields = try Self.fields(names.map { "\($0): \($0)" })
    let keeps = names.indices.map { kept >> $0 & 1 == 1 }
    let pieces = Self.text(of: fields) { line in
      names.firstIndex(of: String(decoding: line.name, as: UTF8.self)).map { keeps[$0] } ?? false
    }
    let expected = names.indices.split { !keeps[$0] }.map { $0.map { "\(names[$0]): \(names[$0])\r\n" }.joined() }
    #expect(pieces == expected)
  }

  @Test("A field is found by its name in any case, and no other one")
  func names() throws {
    let names = (0..<60).map { "X-\(String(repeating: "n", count: $0 % 20))\($0)" }
    let fields = try Self.fields(["Host: h"] + names.map { "\($0): \($0)" })
    for name in names {
      for form in [name, name.lowercased(), name.uppercased()] { #expect(fields.values(named: form) == [name]) }
      #expect(fields.values(named: name + "x") == [])
      #expect(fields.values(named: "Y" + name.dropFirst()) == [])
      #expect(fields.values(named: String(name.dropLast()) + "!") == [])
    }
    #expect(fields.only("HOST") == .once("h"))
    #expect(!fields.contains("Hosts") && !fields.contains("Hos") && fields.only("X") == .absent)
    #expect(fields.values(named: "") == [])
  }

  @Test("A value is compared without regard to case in letters alone")
  func values() {
    let fields = HeaderFields([.init(name: "A", value: "web@socket[1]"), .init(name: "B", value: "x")])
    #expect(fields.isOnly("a", "WEB@socket[1]"))
    #expect(!fields.isOnly("a", "web`socket[1]") && !fields.isOnly("a", "web@socket{1}"))
    #expect(!fields.isOnly("a", "web@socket[1") && !fields.isOnly("c", ""))
  }

  @Test("A set contains its names in any case, and what begins with one of its prefixes")
  func sets() {
    let set = FieldNameSet(
      names: ["Te", "X-Request-Id", "Sec-WebSocket-Key", "upgrade", "Trailers", "forwarded"],
      prefixes: ["x-attest-", "ssl-", "x-client"])
    let members = [
      "te", "TE", "x-request-ID", "sec-websocket-KEY", "X-Attest-", "X-ATTEST-Key-Id", "ssl-", "SSL-Client",
      // Of seven, eight and nine bytes: a comparison tests eight at once.
      "Upgrade", "trailers", "Forwarded", "x-client", "X-Clients",
    ]
    let others = [
      "t", "tee", "x-request-i", "x-request-idx", "sec-websocket-kez", "x-attest", "ssl", "ss", "", "y-attest-",
      "upgrad", "upgradea", "trailer", "trailerss", "trailert", "forwarde", "forwardee", "forwardeds", "x-clien",
      "x-clienu",
    ]
    func contains(_ name: String) -> Bool { Array(name.utf8).withUnsafeBufferPointer(set.contains) }
    for name in members { #expect(contains(name), "\(name)") }
    for name in others { #expect(!contains(name), "\(name)") }
  }
}
