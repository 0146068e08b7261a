import Foundation
import TestSupport
import Testing

@Suite("Several accounts of bearer at one provider", .timeLimit(.minutes(2)))
struct AccountTests {
  @Test func `each account has its own tokens, and the entry chooses the default one`() async throws {
    try await withHostileProvider { shell, provider in
      func signIn(_ options: String, as subject: String) async throws {
        try await provider.control(#"{"subject": "\#(subject)"}"#)
        let login = try await shell.run(
          "login --json --username \(provider.description.username) \(options) work",
          input: provider.description.password + "\n")
        #expect(login.code == 0 && login.output[0].contains(#""user":"\#(subject)""#), "\(login)")
      }
      // The store of an earlier version has this one alone.
      try await signIn("", as: "ada")
      #expect(try await shell.run("status").output.map { String($0.suffix(8)) } == ["min  ada"])
      try await signIn("--account admin@example.com", as: "root")
      try await signIn("--account b", as: "bob")
      let own = try await shell.run("token work").output[0]
      let admin = try await shell.run("token work --account admin@example.com").output[0]
      #expect(own != admin)
      #expect(try await shell.run("token work --account work").output == [own])
      var status = try await shell.run("status").output
      #expect(status.map { String($0.prefix { $0 != " " }) } == ["work", "work/admin@example.com", "work/b"])
      #expect(status[0].hasSuffix(", the default account  ada") && status[1].hasSuffix(" min  root"), "\(status)")
      // A rejected token of one account is not renewed for another.
      #expect(try await shell.run("token work --rejected -", input: admin + "\n").output == [own])
      try shell.configure(["work": provider.entry("account: b")])
      status = try await shell.run("status").output
      #expect(status[0].hasPrefix("work/b ") && status[0].hasSuffix(", the default account  bob"), "\(status)")
      #expect(try await shell.run("token --account work work").output == [own])
      #expect(try await shell.run("exec -- sh -c", "cat $BEARER_TOKEN_FILE").output != [own])
      let json = try await shell.run("status --json").output.joined()
      #expect(json.contains(#""account":"work/b","bound_to_key":false,"default":true"#), "\(json)")
      let logout = try await shell.run("logout --account admin@example.com")
      #expect(logout.code == 0, "\(logout)")
      let gone = try await shell.run("token --account admin@example.com work")
      #expect(gone.code == 77 && gone.errors.joined().contains("login --account admin@example.com work`"), "\(gone)")
      #expect(try await shell.run("token work").code == 0)
      // Without its entry, an account is deleted by its name.
      try shell.configure(["other": provider.entry()])
      #expect(try await shell.run("logout work --account b").code == 0)
      #expect(try await shell.run("status").output.map { String($0.prefix { $0 != " " }) } == ["other", "work"])
      for wrong in ["token --account a/b", "token --account -x", "login --account ''"] {
        #expect(try await shell.run(wrong).code == 64)
      }
    }
  }
}
