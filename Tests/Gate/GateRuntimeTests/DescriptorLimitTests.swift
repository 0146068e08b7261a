import Glibc
import Testing

@testable import GateRuntime

@Suite("Descriptors of the process")
struct DescriptorLimitTests {
  @Test("Clients leave the last descriptors to operators and the store")
  func ceiling() {
    var limit = rlimit()
    #expect(getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
    let ceiling = DescriptorLimit.ceilingOfClients
    #expect(ceiling > 0)
    if let number = Int32(exactly: limit.rlim_cur) { #expect((1...64).contains(number - ceiling)) }
  }
}
