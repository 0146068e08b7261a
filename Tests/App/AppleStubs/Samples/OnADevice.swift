import AttestClient
import AuthenticationServices
import Foundation
import MFAClient
import MFAWire

let session: AttestSession = { fatalError() }()
let keychain: any KeychainService = SecurityKeychainService()
let network: any MFABackend = { fatalError() }()
let window: ASPresentationAnchor = { fatalError() }()
let tag = KeyTag.biometric(of: "com.example.app")
let deviceToken = Data()
