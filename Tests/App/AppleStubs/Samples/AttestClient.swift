import AttestClient
import Foundation

let session: AttestSession = { fatalError() }()
let accessToken = ""

struct ContentView {
  func task(_ action: @escaping @Sendable () async -> Void) {}
}

@discardableResult
func WindowGroup(_ content: () -> Void) -> Int { 0 }
