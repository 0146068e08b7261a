import Foundation
import TestSupport
import Testing

@Suite("bearer userinfo, and a discovery document elsewhere", .timeLimit(.minutes(2)))
struct UserinfoTests {
  @Test("Claims are those of the person who signed in, signed or not, with each kind of token")
  func claims() async throws {
    try await withHostileProvider { shell, provider in
      try await shell.signIn(provider)
      func claims(_ fault: String?) async throws -> BearerShell.Result {
        try await provider.control(#"{"fault": \#(fault.map { "\"\($0)\"" } ?? "null")}"#)
        return try await shell.run("userinfo work")
      }
      for fault in [nil, "userinfo_signed"] {
        let found = try await claims(fault)
        #expect(found.code == 0 && found.output.count == 1, "\(found)")
        #expect(found.output[0].contains(#""sub": "user 1""#) || found.output[0].contains(#""sub":"user 1""#))
      }
      for (fault, code) in [
        ("userinfo_other_subject", "wrong_subject"), ("userinfo_bad_signature", "wrong_signature"),
        ("userinfo_other_audience", "wrong_audience"),
      ] {
        let refused = try await claims(fault)
        #expect(refused.code == 77 && refused.fault == code && refused.output.isEmpty, "\(refused)")
      }
      // A token that the provider has withdrawn is renewed once.
      let old = try await shell.run("token work").output[0]
      try await provider.control(#"{"fault": null, "forget": "\#(old)"}"#)
      let renewed = try await shell.run("userinfo work")
      #expect(renewed.code == 0, "\(renewed)")
      #expect(try await provider.control().refreshes == 1)
      // A token that is bound to a key proves that, with the nonce that the service asks for.
      try await provider.control(#"{"dpop_nonce": true}"#)
      try shell.configure(["work": provider.entry().filter { $0 != "dpop: off" }])
      #expect(try await shell.browse().code == 0)
      let bound = try await shell.run("userinfo work")
      #expect(bound.code == 0 && bound.output[0].contains("user@example.com"), "\(bound)")
    }
  }

  @Test("The discovery document is fetched from its address, and must name the issuer")
  func discovery() async throws {
    try await withHostileProvider { shell, provider in
      try await provider.control(#"{"fault": "discovery_elsewhere"}"#)
      let missing = try await shell.run("providers check work")
      #expect(missing.code == 1 && missing.output.joined().contains("status 404"), "\(missing)")
      let issuer = provider.description.issuer
      try shell.configure([
        "work": provider.entry("discovery_url: \(issuer)/elsewhere")
      ])
      #expect(try await shell.run("providers check work").code == 0)
      #expect(try await shell.signIn(provider).code == 0)
      try shell.configure([
        "other": provider.entry("discovery_url: \(issuer)/elsewhere").map {
          $0.hasPrefix("issuer:") ? "issuer: https://other.example" : $0
        }
      ])
      let other = try await shell.run("providers check other")
      #expect(other.code == 1 && other.output.joined().contains("discovery_of_another_issuer"), "\(other)")
    }
  }
}
