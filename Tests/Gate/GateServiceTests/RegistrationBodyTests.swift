import Testing

@testable import GateService

/// Texts that a sender can make expensive are refused before a decoder keeps, hashes or compares them.
@Suite("Bodies of registrations")
struct RegistrationBodyTests {
  private static let members = #""keyId":"a","attestation":"b","nonce":"c""#
  private static let marks =
    "a" + String(repeating: "\u{301}", count: 13_500) + String(repeating: "\u{323}", count: 13_500)

  private func fault(_ json: String) -> RegistrationBody.ParseError? {
    do throws(RegistrationBody.ParseError) {
      _ = try RegistrationBody(json: Array(json.utf8))
      return nil
    } catch {
      return error
    }
  }

  private func further(_ count: Int) -> String { (0..<count).map { ",\"\($0)\":0" }.joined() }

  @Test("A name of combining marks before 900 members is refused, and so is any name outside ASCII")
  func names() {
    #expect(fault("{\"\(Self.marks)\":0,\(Self.members)\(further(900))}") == .notJSON)
    #expect(fault("{\"\u{E9}\":0,\(Self.members)}") == .notJSON)
    #expect(fault("{\"e\":0,\(Self.members)}") == nil)
  }

  @Test("Other members are ignored, up to 64 members and 256 values")
  func numbers() {
    #expect(fault("{\(Self.members)\(further(61))}") == nil)
    #expect(fault("{\(Self.members)\(further(62))}") == .notJSON)
    func list(_ count: Int) -> String { Array(repeating: "0", count: count).joined(separator: ",") }
    // The object, its three members and the list are five values.
    #expect(fault("{\(Self.members),\"x\":[\(list(251))]}") == nil)
    #expect(fault("{\(Self.members),\"x\":[\(list(252))]}") == .notJSON)
  }

  @Test("A platform is compared as bytes")
  func platforms() {
    #expect(fault("{\"platform\":\"ios\",\(Self.members)}") == nil)
    for platform in ["iOS", "ios\u{301}", Self.marks, ""] {
      #expect(fault("{\"platform\":\"\(platform)\",\(Self.members)}") == .unknownPlatform)
    }
    #expect(fault("{\"platform\":1,\(Self.members)}") == .wrongType("platform", expected: "a string"))
  }
}
