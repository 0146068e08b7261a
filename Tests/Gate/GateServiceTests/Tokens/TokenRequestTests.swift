import Testing

@testable import GateService

@Suite("Bodies of token requests")
struct TokenRequestTests {
  @Test(
    "The audience is read from a form",
    arguments: [
      ("audience=ledger", "ledger"), ("audience=https%3A%2F%2Fapi.example%2fx", "https://api.example/x"),
      ("audience=https://api.example", "https://api.example"), ("audience=a+b%20c", "a b c"),
      ("grant_type=x&audience=ledger&scope=", "ledger"), ("audience=a=b", "a=b"), ("%61udience=%C3%A4", "ä"),
      ("&audience=ledger&", "ledger"),
    ])
  func read(_ body: String, _ audience: String) throws {
    #expect(try TokenRequest(form: Array(body.utf8)).purpose == .token(audience: audience))
  }

  @Test("Without an audience, client_id asks for an attestation; with one, it is another parameter of a token request")
  func client() throws {
    #expect(try TokenRequest(form: Array("client_id=wallet".utf8)).purpose == .attestation(clientID: "wallet"))
    let both = try TokenRequest(form: Array("client_id=wallet&audience=ledger".utf8))
    #expect(both.purpose == .token(audience: "ledger"))
  }

  @Test(
    "A body that breaks the form is refused by its rule",
    arguments: [
      ("", TokenRequest.ParseError.missingAudience), ("audience", .missingAudience), ("audience=", .missingAudience),
      ("Audience=x", .missingAudience), ("{\"audience\":\"x\"}", .missingAudience),
      ("audience=a&audience=a", .repeatedMember), ("audience=a&%61udience=b", .repeatedMember),
      ("audience=a&x=1&x=1", .repeatedMember), ("audience=%", .malformed), ("audience=%4", .malformed),
      ("audience=%zz", .malformed), ("audience=%+1", .malformed), ("audience=%FF", .malformed),
      ("audience=a&%=1", .malformed),
    ])
  func refused(_ body: String, _ fault: TokenRequest.ParseError) {
    #expect(throws: fault) { try TokenRequest(form: Array(body.utf8)) }
  }

  @Test("A body of 4,096 bytes is read, and a longer one is refused")
  func bounded() throws {
    let longest = "audience=" + String(repeating: "a", count: 4096 - 9)
    let audience = String(repeating: "a", count: 4087)
    #expect(try TokenRequest(form: Array(longest.utf8)).purpose == .token(audience: audience))
    #expect(throws: TokenRequest.ParseError.tooLong(bytes: 4097)) {
      try TokenRequest(form: Array((longest + "a").utf8))
    }
  }

  @Test("Names are compared as bytes, not by canonical equivalence")
  func bytes() throws {
    let request = try TokenRequest(form: Array("audience=ledger&%C3%A4=1&a%CC%88=2".utf8))
    #expect(request.purpose == .token(audience: "ledger"))
    #expect(throws: TokenRequest.ParseError.repeatedMember) {
      try TokenRequest(form: Array("audience=ledger&%C3%A4=1&%c3%a4=2".utf8))
    }
  }
}
