import Foundation
import OIDCClient
import TestSupport
import Testing

@testable import bearer

private let installedKubectl = try? Places.tool("kubectl")

@Suite("Tokens for kubectl, Git, curl and commands", .timeLimit(.minutes(3)))
struct CallerTests {
  @Test("Kubectl gets an ExecCredential of the version it asks for, with the newest ID token on demand")
  func execCredential()
    async throws
  {
    try await withHostileProvider { shell, provider in
      try await provider.control(#"{"id_token_lifetime": 90}"#)
      try await shell.signIn(provider)
      let plain = try await shell.run("token work --output kubectl")
      let token = try await shell.run("token work").output[0]
      #expect(
        plain.output[0].wholeMatch(
          of:
            /\{"apiVersion":"client\.authentication\.k8s\.io\/v1","kind":"ExecCredential","status":\{"expirationTimestamp":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ","token":"[\w.-]+"\}\}/
        ) != nil, "\(plain)")
      #expect(plain.output[0].contains("\"token\":\"\(token)\""))
      let info =
        #"{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/VERSION","spec":{"interactive":true}}"#
      let beta = try await shell.run(
        "token work --output kubectl", environment: ["KUBERNETES_EXEC_INFO": info.replacing("VERSION", with: "v1beta1")]
      )
      #expect(beta.output[0].contains("k8s.io/v1beta1"), "\(beta)")
      for (text, code) in [(info.replacing("VERSION", with: "v1alpha1"), Int32(64)), ("no JSON", 65)] {
        let refused = try await shell.run("token work --output kubectl", environment: ["KUBERNETES_EXEC_INFO": text])
        #expect(refused.code == code && refused.output.isEmpty, "\(refused)")
      }
      // The ID token of the sign-in, while it is valid; then that of a refresh.
      let first = try await shell.run("token work --id").output[0]
      #expect(try await shell.run("token work --id --output kubectl").output[0].contains(first))
      try await provider.control(#"{"id_token_lifetime": 3}"#)
      try await shell.signIn(provider)
      let short = try await shell.run("token work --id").output[0]
      try await provider.control(#"{"id_token_lifetime": 300}"#)
      let deadline = ContinuousClock.now + .seconds(20)
      var newest = short
      while newest.contains(short), ContinuousClock.now < deadline {
        newest = try await shell.run("token work --id --output kubectl").output[0]
      }
      #expect(!newest.contains(short) && newest.contains("ExecCredential"))
      #expect(try await shell.run("token work --id").output == [short], "--id alone is that of the sign-in")
      #expect(try await provider.control().refreshes == 1)
      for wrong in ["token work --output kubectl --json", "token work --id --output curl", "token work --output git"] {
        #expect(try await shell.run(wrong).code == 64)
      }
    }
  }

  @Test("Curl sends the token that it reads from its configuration")
  func curl() async throws {
    try await withHostileProvider { shell, provider in
      try await shell.signIn(provider)
      let lines = try await shell.run("token work --output curl")
      let token = try await shell.run("token work").output[0]
      #expect(lines.output == ["oauth2-bearer = \"\(token)\""])
      let curl = try await ChildProcess.run(
        "/usr/bin/curl", ["-s", "--config", "-", provider.description.issuer + "/userinfo"],
        input: Array(lines.output.joined(separator: "\n").utf8))
      #expect(curl.output.joined().contains("user@example.com"), "\(curl)")
      // A token that is bound to a key is of no use there.
      try shell.configure(["work": provider.entry().filter { $0 != "dpop: off" } + ["git_hosts: [git.example.com]"]])
      try await shell.signIn(provider)
      let request = "protocol=https\nhost=git.example.com\n\n"
      for line in [
        "token work --output curl", "token work --output kubectl", "git-credential get", "exec work -- true",
      ] {
        let bound = try await shell.run(line, input: request)
        #expect(bound.code == 64 && bound.fault == "token_bound" && bound.output.isEmpty, "\(bound)")
      }
    }
  }

  @Test("A path or token cannot end the quotation of a line")
  func quotation() {
    let certificate = ClientCertificate(chain: "", key: "", chainFile: "/a \"b\\c", keyFile: "/k\nurl = \"x\"")
    #expect(
      CurlConfiguration.text(token: "t", certificate: certificate)
        == "oauth2-bearer = \"t\"\ncert = \"/a \\\"b\\\\c\"\nkey = \"/k\\nurl = \\\"x\\\"\"\n")
  }

  @Test("Git gets the token for the hosts of the entry alone, and one that was refused is renewed")
  func git() async throws {
    try await withHostileProvider("git_hosts: [git.example.com, 'forge.example.com:8443']") { shell, provider in
      try await shell.signIn(provider)
      let token = try await shell.run("token work").output[0]
      /// What git itself gets: its own `credential` command asks the helper.
      func fill(_ request: String) async throws -> [String] {
        try await ChildProcess.run(
          try Places.tool("git"),
          ["-c", "credential.helper=", "-c", "credential.helper=!bearer git-credential", "credential", "fill"],
          input: Array(request.utf8),
          environment: shell.environment.merging([
            "PATH": Places.products + ":/usr/bin:/bin", "GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_ASKPASS": nil,
            "SSH_ASKPASS": nil,
          ]) { $1 }, in: shell.folder
        ).output
      }
      let filled = try await fill("protocol=https\nhost=git.example.com\n\n")
      #expect(filled.contains("username=oauth2") && filled.contains("password=\(token)"), "\(filled)")
      let named = try await fill("protocol=https\nhost=forge.example.com:8443\nusername=ada\n\n")
      #expect(named.contains("username=ada") && named.contains("password=\(token)"), "\(named)")
      for host in ["other.example.com", "forge.example.com", "git.example.com.evil.example", "git.example.com:8443"] {
        #expect(try await fill("protocol=https\nhost=\(host)\n\n").contains { $0.hasPrefix("password") } == false)
      }
      let direct = try await shell.run("git-credential get", input: "protocol=https\nhost=git.example.com\npath=a/b\n")
      #expect(direct.output.last?.wholeMatch(of: /password_expiry_utc=\d{10}/) != nil, "\(direct)")
      let plain = try await shell.run("git-credential get", input: "protocol=http\nhost=git.example.com\n")
      #expect(plain.code == 64 && plain.output.isEmpty, "\(plain)")
      // Another password is not this one's concern; storing and later actions are not, either.
      for (action, input) in [
        ("erase", "password=x"), ("erase", "username=ada"), ("store", "password=\(token)"), ("capability", ""),
      ] {
        let done = try await shell.run(
          "git-credential \(action)", input: "protocol=https\nhost=git.example.com\n\(input)\n")
        #expect(done.code == 0 && done.output.isEmpty && done.errors.isEmpty, "\(done)")
      }
      #expect(try await provider.control().refreshes == 0)
      try await shell.run(
        "git-credential erase", input: "protocol=https\nhost=git.example.com\npassword=\(token)\n")
      #expect(try await provider.control().refreshes == 1)
      #expect(try await shell.run("token work").output != [token])
    }
  }

  @Test(
    "A request of git is read, and one with two meanings is not",
    arguments: [
      ("protocol=https\nhost=a.example\n", "a.example"),
      ("host=A.example:8443\nprotocol=https\n\nhost=b", "a.example:8443"),
      ("protocol=https\nhost=a.example\nwwwauth[]=x\nwwwauth[]=y\ncapability[]=authtype\n", "a.example"),
      ("protocol=https\nhost=a.example\nhost=b.example\n", nil), ("protocol=https\n", nil), ("host=a.example\n", nil),
      ("protocol=https\nhost=\n", nil), ("protocol=https\nhost=a.example\r\n", nil),
      ("protocol=https\nhost\n", nil), ("protocol=https\n=a\nhost=a\n", nil), ("", nil),
      ("protocol=https\nhost=a.example\0\n", nil), ("protocol=https\nhost=\u{212A}.example\n", "\u{212A}.example"),
    ] as [(String, String?)])
  func request(text: String, host: String?) {
    #expect(GitCredential(Array(text.utf8))?.host == host)
    #expect(GitCredential([0xFF] + Array(text.utf8)) == nil)
  }

  @Test("Requests are bounded")
  func requests() {
    let begin = "protocol=https\nhost=a.example\n"
    #expect(GitCredential(Array((begin + String(repeating: "a[]=b\n", count: 254)).utf8)) != nil)
    #expect(GitCredential(Array((begin + String(repeating: "a[]=b\n", count: 255)).utf8)) == nil)
    #expect(GitCredential(Array((begin + "path=" + String(repeating: "x", count: GitCredential.largest)).utf8)) == nil)
    for (text, isConfidential) in [
      ("https\nhost=a.example", true), ("http\nhost=a.example", false), ("http\nhost=127.0.0.1:80", true),
      ("http\nhost=[::1]:80", true), ("http\nhost=localhost.example", false), ("ftp\nhost=localhost", false),
    ] {
      #expect(GitCredential(Array("protocol=\(text)\n".utf8))?.isConfidential == isConfidential, "\(text)")
    }
  }

  @Test("A command has a file with a valid token, which is renewed while it runs and gone afterwards")
  func command()
    async throws
  {
    try await withHostileProvider { shell, provider in
      try await shell.signIn(provider)
      // A tmpfs of every Linux: a folder on a disk is not used.
      let runtime = "/dev/shm/sallyport-test-\(UUID().uuidString)"
      defer { try? FileManager.default.removeItem(atPath: runtime) }
      try FileManager.default.createDirectory(
        atPath: runtime + "/sallyport-bearer.left", withIntermediateDirectories: true,
        attributes: [.posixPermissions: 0o700])
      try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: runtime)
      let runtimeVariables = ["XDG_RUNTIME_DIR": runtime] as [String: String?]
      let token = try await shell.run("token work").output[0]
      // The command waits until its file has another token than the one that a service refused.
      let script = """
        old=$(cat "$BEARER_TOKEN_FILE"); stat -c %a "$BEARER_TOKEN_FILE" "${BEARER_TOKEN_FILE%/*}"
        curl -s -K "$BEARER_CURL_CONFIG" \(provider.description.issuer)/userinfo; echo
        new=$(bearer token work --rejected "$BEARER_TOKEN_FILE")
        while [ "$(cat "$BEARER_TOKEN_FILE")" = "$old" ]; do sleep 0.1; done
        [ "$(cat "$BEARER_TOKEN_FILE")" = "$new" ] && [ "$new" != "$old" ] && echo "$old" && exit 7
        """
      try shell.write(script, to: "script")
      let run = try await shell.run(
        "exec work -- bash script",
        environment: runtimeVariables.merging(["PATH": Places.products + ":/usr/bin:/bin"]) { $1 })
      #expect(run.code == 7 && run.errors.isEmpty, "\(run)")
      #expect(run.output.first == "600" && run.output.dropFirst().first == "700" && run.output.last == token, "\(run)")
      #expect(run.output.contains { $0.contains("user@example.com") }, "\(run)")
      // Neither its own folder is left, nor that of an owner that is gone.
      #expect(try FileManager.default.contentsOfDirectory(atPath: runtime) == [])
      // Signals reach the command, and its end is the end of both.
      let waiting = try shell.start("exec work -- sleep 600", environment: runtimeVariables)
      let end = ContinuousClock.now + .seconds(30)
      while try FileManager.default.contentsOfDirectory(atPath: runtime).isEmpty, ContinuousClock.now < end {
        try await Task.sleep(for: .milliseconds(5))
      }
      waiting.send(SIGTERM)
      #expect(try await waiting.exit() == .code(143), "\(waiting.errors.lines)")
      #expect(try FileManager.default.contentsOfDirectory(atPath: runtime) == [])
      let missing = try await shell.run("exec work -- no-such-program", environment: runtimeVariables)
      #expect(missing.code == 66 && missing.errors[0].contains("no-such-program"), "\(missing)")
      #expect(try await shell.run("exec work", environment: runtimeVariables).code == 64)
      // A folder that others can read is not used, and no disk gets the token.
      let disk = shell.folder + "/runtime"
      try FileManager.default.createDirectory(
        atPath: disk, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
      let elsewhere = try await shell.run(
        "exec work -- printenv BEARER_TOKEN_FILE", environment: ["XDG_RUNTIME_DIR": disk])
      #expect(elsewhere.output.first?.hasPrefix("/dev/shm/") == true, "\(elsewhere)")
      #expect(try FileManager.default.contentsOfDirectory(atPath: disk) == [])
      try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: runtime)
      let shared = try await shell.run("exec work -- printenv BEARER_TOKEN_FILE", environment: runtimeVariables)
      #expect(shared.output.first?.hasPrefix("/dev/shm/sallyport-bearer.") == true || shared.code == 73, "\(shared)")
      #expect(try FileManager.default.contentsOfDirectory(atPath: runtime) == [])
    }
  }

  @Test("A command whose token cannot be renewed any more is told so, once, and gets the token of the next sign-in")
  func stuck() async throws {
    try await withHostileProvider { shell, provider in
      try await shell.signIn(provider)
      try shell.write(try await shell.run("token work").output[0], to: "old")
      let script = """
        old=$(cat "$BEARER_TOKEN_FILE"); echo ready
        while [ "$(cat "$BEARER_TOKEN_FILE")" = "$old" ]; do sleep 0.1; done
        """
      try shell.write(script, to: "script")
      let command = try shell.start("exec work -- bash script")
      _ = try await command.output.first("the command") { $0 == "ready" }
      try await provider.control(#"{"fault": "token_answer_lost"}"#)
      let lost = try await shell.run("token work --rejected old")
      #expect(lost.fault == "refresh_uncertain", "\(lost)")
      let warning = try await command.errors.first("the warning") { $0.hasPrefix("warning: ") }
      #expect(warning.hasPrefix("warning: refresh_uncertain: work: ") && warning.contains("`bearer login work`"))
      try await provider.control(#"{"fault": null}"#)
      try await shell.signIn(provider)
      #expect(try await command.exit() == .code(0), "\(command.errors.lines)")
      #expect(command.errors.lines == [warning])
      #expect(try await provider.control().refreshes == 1)
    }
  }

  @Test("A command gets the variables that bearer has, whatever their bytes, and those of the token")
  func variables() async throws {
    try await withHostileProvider { shell, provider in
      try await shell.signIn(provider)
      let script = #"""
        export BYTES=$'\xff\xfe' BEARER_TOKEN_FILE=before BEARER_TOKEN_FILES=other
        exec "$0" exec work -- sh -c 'printf %s "$BYTES" | od -An -tx1; env | grep -a ^BEARER_TOKEN_FILE'
        """#
      let run = try await ChildProcess.run(
        "/bin/bash", ["-c", script, try Places.product("bearer")], environment: shell.environment, in: shell.folder)
      #expect(run.exit == .code(0) && run.output.count == 3 && run.output.first == " ff fe", "\(run)")
      #expect(run.output.contains("BEARER_TOKEN_FILES=other"), "\(run)")
      #expect(run.output.contains { $0.hasPrefix("BEARER_TOKEN_FILE=/") }, "\(run)")
    }
  }

  @Test("The URL of a proof has no user and no password", arguments: ["u:p@", "u@", ":p@"])
  func credentialsInURL(user: String) async throws {
    try await Places.withTemporaryFolder { folder in
      let run = try await BearerShell(folder).run("token --header GET https://\(user)h.example/x")
      #expect(run.code == 64 && run.errors[0].contains("must not contain a user or a password"), "\(run)")
    }
  }

  @Test(
    "Of --output, --header and --json there is one",
    arguments: ["--json --header GET https://h.example/x", "--json --output curl"])
  func forms(_ options: String) async throws {
    try await Places.withTemporaryFolder { folder in
      let run = try await BearerShell(folder).run("token " + options)
      #expect(run.code == 64 && run.errors[0].contains("exclude one another"), "\(run)")
    }
  }

  /// The versions of ExecCredential that it knows: the first one has been there since Kubernetes 1.22.
  private static func versions(_ kubectl: String) async throws -> [String] {
    struct Output: Decodable {
      struct Version: Decodable { let minor: String }
      let clientVersion: Version
    }
    let run = try await ChildProcess.run(kubectl, ["version", "--client", "--output=json"])
    let output = try JSONDecoder().decode(Output.self, from: Data(run.output.joined(separator: "\n").utf8))
    let minor = Int(output.clientVersion.minor.prefix { $0.isNumber }) ?? 0
    return minor < 22 ? ["v1beta1"] : ["v1", "v1beta1"]
  }

  @Test(
    "kubectl sends the token that bearer gives it", .enabled(if: installedKubectl != nil, "kubectl is not installed"))
  func kubectl() async throws {
    let kubectl = try #require(installedKubectl)
    try await Places.withTemporaryFolder { folder in
      // kubectl sends tokens by TLS alone.
      let provider = try await HostileProvider("--certificate", "good")
      let shell = BearerShell(folder)
      try shell.configure(["work": provider.entry("ca_file: \(provider.description.ca_file)")])
      try await shell.signIn(provider)
      for version in try await Self.versions(kubectl) {
        try shell.write(
          """
          apiVersion: v1
          kind: Config
          current-context: c
          contexts: [{ name: c, context: { cluster: c, user: u } }]
          clusters:
            - name: c
              cluster: { server: "\(provider.description.issuer)", certificate-authority: "\(provider.description.ca_file)" }
          users:
            - name: u
              user:
                exec:
                  apiVersion: client.authentication.k8s.io/\(version)
                  command: bearer
                  args: [token, work, --output, kubectl]
                  interactiveMode: Never

          """, to: "kubeconfig")
        let run = try await ChildProcess.run(
          kubectl, ["--kubeconfig", "kubeconfig", "get", "--raw", "/userinfo"],
          environment: shell.environment.merging(["PATH": Places.products + ":/usr/bin:/bin"]) { $1 }, in: folder)
        #expect(run.output.joined().contains("user@example.com"), "\(version): \(run)")
      }
      try await provider.stop()
    }
  }
}
