import Foundation
import Glibc
import MFADomain
import MFAFixtures
import TestSupport
import Testing

@Suite("The console of a backend over TLS", .serialized, .timeLimit(.minutes(5)))
struct BackendServedConsoleTests {
  @Test("Two people sign in by certificate, one unlocks an account, and the history has the person")
  func certificates() async throws {
    try await BackendInstallation.make { place in
      try await place.serving { backend in
        let ada = try await place.enrolled(TestPhone(username: "ada"), at: backend)
        #expect(try await place.operate("admin", "lock", "ada").exit == .code(0))
        try await ServedConsoleProcess.makeCertificates(for: ["eva", "bob", "eve"], in: place.folder)
        try ServedConsoleProcess.add(to: place.file, people: ["eva": "support", "bob": "view"])
        let console = try await ServedConsoleProcess("mfa-backend", place.file, in: place.folder)
        defer { console.process.kill() }
        let eva = try await console.signIn(as: "eva")
        let bob = try await console.signIn(as: "bob")
        #expect(try await !console.send("GET", ada.path, as: "bob", cookie: bob).text.contains("/act/unlock"))
        let done = try await console.act("unlock", "account=\(ada.id)", on: ada.path, as: "eva", cookie: eva)
        #expect(done.status == 303, "\(done.text)")
        let entry = try await place.operate("audit", "search", "--event", "user.unlocked", "--json").output
        let actor = #""actor":"operator:uid \#(getuid())"#
        #expect(entry.count == 1 && entry[0].contains(actor) && entry[0].contains(#"for \"CN=eva\""#), "\(entry)")
        #expect(try await place.operate("audit", "verify").exit == .code(0))
        let export = try await console.send("GET", "/accounts.csv", as: "eva", cookie: eva)
        #expect(export.status == 403 && export.text.contains("Your role is support"))
        for thief in [nil, "bob", "eve"] {
          #expect(try await console.send("GET", "/accounts", as: thief, cookie: eva).status == 401)
        }
        #expect(try await console.send("POST", "/sign-in/certificate", as: "eve").status == 403)
        console.process.send(SIGTERM)
        #expect(try await console.process.exit() == .code(0))
      }
    }
  }

  @Test("People sign in at a provider by their groups, and a forged token signs no one in")
  func provider() async throws {
    let provider = try await ProviderProcess()
    try await BackendInstallation.make { place in
      try await place.serving { backend in
        let ada = try await place.enrolled(TestPhone(username: "ada"), at: backend)
        try await ServedConsoleProcess.makeCertificates(for: [], in: place.folder)
        try ProviderProcess.writeSecret(in: place.folder)
        try ServedConsoleProcess.add(
          to: place.file, people: [:], provider.settings(groups: ["support": "support", "staff": "view"]))
        let console = try await ServedConsoleProcess("mfa-backend", place.file, in: place.folder)
        defer { console.process.kill() }
        try await provider.set(groups: #"["staff", "support"]"#)
        let cookie = try #require(try await console.signIn(at: provider).session)
        #expect(try await console.act("lock", "account=\(ada.id)", on: ada.path, cookie: cookie).status == 303)
        let entry = try await place.operate("audit", "search", "--event", "user.locked", "--json").output
        #expect(entry.count == 1 && entry[0].contains(#"for \"ada (user 1)\""#), "\(entry)")
        for (fault, groups) in [(nil, #"["Support"]"#), ("bad_signature", #"["support"]"#)] {
          try await provider.set(fault: fault, groups: groups)
          let answer = try await console.signIn(at: provider)
          #expect(answer.status == 403 && answer.session == nil)
        }
      }
    }
    await provider.stop()
  }

  @Test("Without settings there is no console to serve")
  func refusals() async throws {
    try await BackendInstallation.make { place in
      let run = try await place.operate("console", "--serve")
      #expect(run.exit == .code(78) && run.errors.joined().contains("admin.console.listen is not set"))
    }
  }
}
