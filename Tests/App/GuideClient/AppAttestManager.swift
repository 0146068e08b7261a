// swift-format-ignore-file
// The unchanged code of the guide: GuideTests compares it with the guide. Only the imports differ, because Linux has
// neither CryptoKit nor DeviceCheck.
import Foundation
import FoundationNetworking
import GuideShim

actor AppAttestManager {
    private let service = DCAppAttestService.shared
    private let keychainKey = "com.example.app.attestKeyId"

    // Call once on first launch. Idempotent — skips if already registered.
    func registerIfNeeded(proxyBaseURL: URL) async throws {
        if loadKeyId() != nil { return } // Already registered

        // 1. Generate a new Secure Enclave key pair
        let keyId = try await service.generateKey()

        // 2. Fetch a challenge from the proxy
        let nonce = try await fetchChallenge(from: proxyBaseURL)

        // 3. Hash the nonce bytes — Apple expects a Data hash, not raw nonce
        let nonceData = Data(hexString: nonce)! // see extension below
        let clientDataHash = Data(SHA256.hash(data: nonceData))

        // 4. Attest the key with Apple
        let attestation = try await service.attestKey(keyId, clientDataHash: clientDataHash)

        // 5. Register with the proxy
        try await register(
            proxyBaseURL: proxyBaseURL,
            keyId: keyId,
            attestation: attestation,
            nonce: nonce
        )

        // 6. Persist the key ID
        saveKeyId(keyId)
    }

    // MARK: - Private

    private func fetchChallenge(from baseURL: URL) async throws -> String {
        let url = baseURL.appendingPathComponent("/attest/challenge")
        let (data, _) = try await URLSession.shared.data(from: url)
        let json = try JSONDecoder().decode([String: String].self, from: data)
        guard let nonce = json["nonce"] else {
            throw AttestError.missingNonce
        }
        return nonce
    }

    private func register(
        proxyBaseURL: URL,
        keyId: String,
        attestation: Data,
        nonce: String
    ) async throws {
        let url = proxyBaseURL.appendingPathComponent("/attest/register")
        var request = URLRequest(url: url)
        request.httpMethod = "POST"
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        request.httpBody = try JSONEncoder().encode([
            "keyId": keyId,
            "attestation": attestation.base64EncodedString(),
            "nonce": nonce,
        ])
        let (data, response) = try await URLSession.shared.data(for: request)
        guard (response as? HTTPURLResponse)?.statusCode == 200 else {
            let body = String(data: data, encoding: .utf8) ?? "(no body)"
            throw AttestError.registrationFailed(body)
        }
    }

    // MARK: - Keychain helpers

    func loadKeyId() -> String? {
        let query: [String: Any] = [
            kSecClass as String: kSecClassGenericPassword,
            kSecAttrAccount as String: keychainKey,
            kSecReturnData as String: true,
        ]
        var result: AnyObject?
        guard SecItemCopyMatching(query as CFDictionary, &result) == errSecSuccess,
              let data = result as? Data
        else { return nil }
        return String(data: data, encoding: .utf8)
    }

    private func saveKeyId(_ keyId: String) {
        let data = Data(keyId.utf8)
        let query: [String: Any] = [
            kSecClass as String: kSecClassGenericPassword,
            kSecAttrAccount as String: keychainKey,
            kSecValueData as String: data,
        ]
        SecItemDelete(query as CFDictionary)
        SecItemAdd(query as CFDictionary, nil)
    }
}

enum AttestError: Error {
    case missingNonce
    case registrationFailed(String)
    case assertionFailed(String)
    case serviceUnavailable
}

extension AppAttestManager {
    /// Returns the three headers required by the proxy for each WebSocket connection.
    func assertionHeaders(proxyBaseURL: URL) async throws -> [String: String] {
        guard let keyId = loadKeyId() else {
            throw AttestError.serviceUnavailable
        }

        // 1. Fetch a fresh challenge
        let nonce = try await fetchChallenge(from: proxyBaseURL)

        // 2. Hash the nonce bytes
        let nonceData = Data(hexString: nonce)!
        let clientDataHash = Data(SHA256.hash(data: nonceData))

        // 3. Generate an assertion (signed by Secure Enclave)
        let assertion = try await service.generateAssertion(keyId, clientDataHash: clientDataHash)

        return [
            "X-App-Assert-KeyId": keyId,
            "X-App-Assert-Data": assertion.base64EncodedString(),
            "X-App-Assert-Nonce": nonce,
        ]
    }
}

extension Data {
    init?(hexString: String) {
        let hex = hexString.lowercased()
        guard hex.count % 2 == 0 else { return nil }
        var data = Data(capacity: hex.count / 2)
        var index = hex.startIndex
        while index < hex.endIndex {
            let byteString = hex[index ..< hex.index(index, offsetBy: 2)]
            guard let byte = UInt8(byteString, radix: 16) else { return nil }
            data.append(byte)
            index = hex.index(index, offsetBy: 2)
        }
        self = data
    }
}
