import MFADelivery
import MFADomain
import MFAFixtures
import Testing

@Suite("Log outbox")
struct LogOutboxTests {
  @Test("A-211 A-097 a code is logged in the documented form")
  func words() throws {
    let log = CapturedLog()
    LogOutbox(logger: log.logger).send(
      OutgoingMessage(destination: .phone(try PhoneNumber("+1234567890")), code: "000042", lifetime: .seconds(300)))
    #expect(log.lines.map(\.message) == ["📱 SMS to +1234567890: Your OTP is 000042"])
  }
}
