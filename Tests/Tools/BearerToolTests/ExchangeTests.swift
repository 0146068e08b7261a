import Foundation
import TestSupport
import Testing

@Suite("bearer exchange, and pushed requests", .timeLimit(.minutes(2)))
struct ExchangeTests {
  private struct Printed: Decodable {
    let access_token: String
    let issued_token_type: String?
    let token_type: String
    let expires_at: Int?
    let cnf: [String: String]?
  }

  @Test func `a token is exchanged for one of another service, and what is refused has its code`() async throws {
    try await withHostileProvider { shell, provider in
      try await shell.signIn(provider)
      let own = try await shell.run("token work").output[0]
      let exchanged = try await shell.run("exchange work --audience billing --scope read")
      #expect(exchanged.code == 0 && exchanged.output.count == 1 && exchanged.output != [own], "\(exchanged)")
      #expect(try await shell.run("token work").output == [own], "the account keeps its token")
      let json = try await shell.run("exchange work --json --requested-type access_token --subject-token -", input: own)
      let printed = try JSONDecoder().decode(Printed.self, from: Data(json.output.joined().utf8))
      #expect(printed.issued_token_type == "urn:ietf:params:oauth:token-type:access_token" && printed.expires_at != nil)
      let target = try await shell.run("exchange work --audience other")
      #expect(target.code == 77 && target.fault == "invalid_target" && target.output.isEmpty, "\(target)")
      // The provider repeats the token in its text, which is not printed.
      let secret = "sEcReT-subject-token-of-42-characters-00000"
      let unknown = try await shell.run("exchange --debug work --subject-token -", input: secret + "\n")
      #expect(unknown.code == 77 && !unknown.errors.joined().contains(secret.prefix(16)), "\(unknown)")
      #expect(unknown.errors.joined().contains("subject_token=..."), "\(unknown)")
      let identity = try await shell.run("exchange work --id")
      #expect(identity.code == 77 && identity.fault == "invalid_request", "\(identity)")
      for (line, input, code) in [
        ("exchange --requested-type x", "", Int32(64)), ("exchange --subject-type jwt2", "", 64),
        ("exchange --subject-type id_token", "", 64), ("exchange --actor-type jwt", "", 64),
        ("exchange --resource billing", "", 64), ("exchange --resource https://a.example/#x", "", 64),
        ("exchange --id --subject-token -", "x", 64), ("exchange --subject-token - --actor-token -", "x", 64),
        ("exchange --subject-token -", "two words", 65), ("exchange --subject-token -", "", 65),
        ("exchange --audience ''", "", 77), ("exchange --subject-token missing", "", 66),
      ] {
        let wrong = try await shell.run(line, input: input)
        #expect(wrong.code == code && wrong.output.isEmpty, "\(line): \(wrong)")
      }
      // A bound token proves its key, and so does the new one.
      try shell.configure(["work": provider.entry().filter { $0 != "dpop: off" }])
      #expect(try await shell.browse().code == 0)
      let bound = try await shell.run("exchange work")
      #expect(bound.code == 64 && bound.fault == "token_bound" && bound.output.isEmpty, "\(bound)")
      let whole = try await shell.run("exchange work --json")
      let found = try JSONDecoder().decode(Printed.self, from: Data(whole.output.joined().utf8))
      #expect(found.token_type == "DPoP" && found.cnf?["jkt"] != nil, "\(whole)")
    }
  }

  @Test func `a request is pushed where provider or entry demand it, and the browser carries a reference alone`()
    async throws
  {
    try await withHostileProvider { shell, provider in
      #expect(try await shell.browse().code == 0)
      #expect(try await provider.control().paths["/par"] == nil)
      try await provider.control(#"{"push_required": true}"#)
      let check = try await shell.run("providers check work")
      #expect(check.code == 0 && check.output.joined().contains("pushed requests, demanded"), "\(check)")
      #expect(try await shell.browse().code == 0)
      #expect(try await provider.control(#"{"push_required": false}"#).paths["/par"] == 1)
      // Each way to authenticate at the endpoint, of which none names the client twice.
      let known = provider.description
      try shell.write(known.secret + "\n", to: "secret")
      let entry = provider.entry("par: required").filter { !$0.hasPrefix("client_id") }
      for more in [
        ["client_id: \(known.confidential_client)", "client_secret_file: secret"],
        ["client_id: \(known.post_client)", "client_secret_file: secret", "authentication: post"],
        [
          "client_id: \(known.key_client)", "authentication: private_key_jwt", "private_key_file: \(known.key_file)",
          "assertion_audience: token_endpoint",
        ],
      ] {
        try shell.configure(["work": entry + more])
        let login = try await shell.browse()
        #expect(login.code == 0, "\(more): \(login)")
      }
      #expect(try await provider.control().paths["/par"] == 4)
      try shell.configure(["work": provider.entry("par: required")])
      let shown = try shell.start("login --no-browser --timeout 5 work")
      _ = try await shown.errors.first("the limit") { $0.hasSuffix(", once within 60 s:") }
      shown.send(SIGTERM)
      _ = try await shown.exit()
      for fault in ["pushed_without_lifetime", "pushed_two_words"] {
        try await provider.control(#"{"fault": "\#(fault)"}"#)
        let login = try await shell.browse()
        #expect(login.code == 76 && login.fault == "answer_malformed", "\(login)")
      }
      try await provider.control(#"{"fault": null}"#)
      let refused = try await shell.browse("login --parameter prompt=create --timeout 90 work")
      #expect(refused.code == 77 && refused.fault == "invalid_request", "\(refused)")
    }
  }
}
