import { execFileSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import http from 'node:http'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { compactVerify } from 'jose'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { DEST, keyRecord, now, openStir, ORIG, origid, serve } from '../../support/stir-rig.ts'
import { StirPki } from '../../support/stir-pki.ts'
import type { CallToSign, SignedCall } from '../../../schema/contracts/stir.ts'
import { identityText } from '../../../schema/stir/identity-header.ts'
import { passportHeader, shakenPayload } from '../../../schema/stir/passport.ts'

const pki = new StirPki()
afterAll(() => pki.remove())
const signer = pki.sign('SHAKEN 1234')
const other = pki.sign('other')

const call: CallToSign = {
  ...{ tenantId: null, orig: `+${ORIG}`, dest: `+${DEST}`, attestation: 'A' },
  ...{ origid, iat: now },
}

const identitiesOf = (signed: SignedCall): readonly string[] =>
  signed.kind === 'signed' ? signed.identities : [signed.why]

const partsOf = (identity = '') => {
  const [jws = '', ...params] = identity.split(';')
  const [header = '', payload = '', signature = ''] = jws.split('.')
  const read = (text: string) => JSON.parse(Buffer.from(text, 'base64url').toString()) as unknown
  return {
    jws,
    params,
    input: `${header}.${payload}`,
    signature,
    head: read(header),
    claims: read(payload),
  }
}

test('the header is as RFC 8224 and RFC 8588 say, with the keys in their order', async () => {
  const { stir } = await openStir({ keys: [keyRecord(signer, { x5u: 'https://c.example/a.pem' })] })
  const [identity = ''] = identitiesOf(await stir.sign(call))
  const { params, head, claims } = partsOf(identity)
  expect(params).toEqual(['info=<https://c.example/a.pem>', 'alg=ES256', 'ppt=shaken'])
  expect(JSON.stringify(head)).toBe(
    '{"alg":"ES256","ppt":"shaken","typ":"passport","x5u":"https://c.example/a.pem"}',
  )
  expect(JSON.stringify(claims)).toBe(
    `{"attest":"A","dest":{"tn":["${DEST}"]},"iat":${now},"orig":{"tn":"${ORIG}"},` +
      `"origid":"${origid}"}`,
  )
})

test('OpenSSL verifies our signature, and so does jose', async () => {
  const { stir } = await openStir({ keys: [keyRecord(signer)] })
  const [identity = ''] = identitiesOf(await stir.sign(call))
  const { jws, input, signature } = partsOf(identity)
  const { publicKey } = new X509Certificate(signer.certificate)
  await compactVerify(jws, publicKey)
  const folder = mkdtempSync(join(tmpdir(), 'stir-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = (name: string, content: string | Buffer) => {
    writeFileSync(join(folder, name), content)
    return join(folder, name)
  }
  const words = [
    ...[
      'dgst',
      '-sha256',
      '-verify',
      file('key', publicKey.export({ format: 'pem', type: 'spki' })),
    ],
    ...['-signature', file('signature', asDer(Buffer.from(signature, 'base64url')))],
    file('input', input),
  ]
  expect(execFileSync('openssl', words).toString()).toBe('Verified OK\n')
})

/** The two numbers of a signature as OpenSSL takes them. */
function asDer(raw: Buffer): Buffer {
  const integers = [raw.subarray(0, 32), raw.subarray(32)].map((bytes) => {
    const plain = Buffer.from(bytes.toString('hex').replace(/^(?:00)+/, ''), 'hex')
    const positive = (plain[0] ?? 0) > 0x7f ? Buffer.concat([Buffer.of(0), plain]) : plain
    return Buffer.concat([Buffer.of(2, positive.length), positive])
  })
  const content = Buffer.concat(integers)
  return Buffer.concat([Buffer.of(0x30, content.length), content])
}

test('without x5u the certificate is published below PUBLIC_URL, by a name of its own', async () => {
  const { stir } = await openStir({ keys: [keyRecord(signer)] })
  const url = stir.keyStatus(1)?.x5u ?? ''
  expect(url).toMatch(/^https:\/\/tollgate\.example\/stir\/certificates\/[0-9a-f]{32}\.pem$/)
  expect(stir.publishedCertificate(url.split('/').at(-1) ?? '')).toBe(signer.chain)
  expect(stir.publishedCertificate('other.pem')).toBeUndefined()
  const inside = await openStir({ keys: [keyRecord(signer)], publicUrl: 'http://10.0.0.1' })
  expect(inside.stir.canSign(null)).toBe(false)
  expect(inside.stir.keyStatus(1)).toMatchObject({ state: 'unusable' })
})

test('the newest key that has begun signs; a tenant has its own, else the one of the platform', async () => {
  const at = (name: string) => `https://c.example/${name}.pem`
  const key = (id: number, more: object) => keyRecord(signer, { id, x5u: at(String(id)), ...more })
  const { stir } = await openStir({
    keys: [
      key(1, { validFrom: (now - 20) * 1_000 }),
      key(2, { validFrom: (now - 10) * 1_000, validUntil: (now + 50) * 1_000 }),
      key(3, { validFrom: (now + 10) * 1_000 }),
      key(4, { tenantId: 7 }),
      key(5, { tenantId: 7, isActive: false, validFrom: now * 1_000 }),
    ],
  })
  const usedBy = async (tenantId: number | null, iat: number) =>
    /info=<([^>]+)>/.exec(identitiesOf(await stir.sign({ ...call, tenantId, iat }))[0] ?? '')?.[1]
  expect(await usedBy(null, now - 15)).toBe(at('1'))
  expect(await usedBy(null, now)).toBe(at('2'))
  expect(await usedBy(null, now + 10)).toBe(at('3'))
  expect(await usedBy(7, now)).toBe(at('4'))
  expect(await usedBy(8, now)).toBe(at('2'))
  expect([1, 2, 3, 4, 5].map((id) => stir.keyStatus(id)?.state)).toEqual([
    ...['usable', 'in_use', 'waiting', 'in_use', 'off'],
  ])
})

test('a key does not sign with the certificate of another key, nor after its certificate', async () => {
  const wrong = await openStir({ keys: [keyRecord(signer, { certificate: other.chain })] })
  expect(wrong.stir.keyStatus(1)).toMatchObject({ state: 'unusable' })
  expect(await wrong.stir.sign(call)).toEqual({ kind: 'unsigned', why: 'there is no valid key' })
  const { stir } = await openStir({ keys: [keyRecord(signer)] })
  const later = now + 11 * 86_400
  expect(await stir.sign({ ...call, iat: later })).toMatchObject({ kind: 'unsigned' })
})

test('a key whose certificate others publish signs once it has been fetched', async () => {
  const server = await serve({ '/a.pem': signer.chain, '/b.pem': other.chain })
  const at = (path: string) => ({ certificate: null, x5u: server.url(path) })
  const { stir } = await openStir({
    keys: [keyRecord(signer, at('/a.pem')), keyRecord(signer, { id: 2, ...at('/b.pem') })],
  })
  expect(stir.keyStatus(1)).toMatchObject({ state: 'waiting' })
  await expect.poll(() => stir.keyStatus(1)?.state).toBe('in_use')
  await expect.poll(() => stir.keyStatus(2)?.state).toBe('unusable')
})

test('keys that are written again and again ask a slow host once a round, and no other key waits', async () => {
  const server = await serve({ '/slow': () => undefined, '/a.pem': signer.chain })
  const at = (id: number, path: string) =>
    keyRecord(signer, { id, certificate: null, x5u: server.url(path) })
  const keys = [at(1, '/slow'), at(2, '/slow'), at(3, '/slow'), at(4, '/a.pem')]
  const { stir } = await openStir({ keys })
  for (let time = 0; time < 20; time += 1) await stir.reload()
  await expect.poll(() => stir.keyStatus(4)?.state).toBe('in_use')
  expect(server.asked.filter((path) => path === '/slow')).toHaveLength(3)
})

test('a call that is forwarded gets a PASSporT for each diversion, after those that it came with', async () => {
  const { stir } = await openStir({ keys: [keyRecord(signer)] })
  const divertedBy = [
    { number: DEST, dest: '+12155551214' },
    { number: '+12155551214', dest: '+12155551215' },
  ]
  const forwarded = { ...call, dest: '+12155551215', divertedBy }
  const signed = identitiesOf(await stir.sign(forwarded)).map(partsOf)
  expect(signed.map(({ claims }) => claims)).toEqual([
    expect.objectContaining({ attest: 'A', dest: { tn: [DEST] } }),
    { dest: { tn: ['12155551214'] }, div: { tn: DEST }, iat: now, orig: { tn: ORIG } },
    { dest: { tn: ['12155551215'] }, div: { tn: '12155551214' }, iat: now, orig: { tn: ORIG } },
  ])
  expect(signed[1]?.params.at(-1)).toBe('ppt=div')
  const received = ['as it was received;info=<https://a.example/>']
  const passed = identitiesOf(await stir.sign({ ...forwarded, received }))
  expect([passed[0], passed.length]).toEqual([received[0], 3])
})

test.each([
  ['an anonymous caller', { orig: '' }],
  ['a name', { orig: 'alice' }],
  ['a called name', { dest: 'bob' }],
  ['a long number', { orig: '1'.repeat(65) }],
  ['a forwarding name', { divertedBy: [{ number: 'x', dest: '1' }] }],
  [
    'too many forwards',
    { divertedBy: Array.from({ length: 11 }, () => ({ number: '1', dest: '1' })) },
  ],
])('a call with %s is not signed', async (_, more) => {
  const { stir } = await openStir({ keys: [keyRecord(signer)] })
  expect(await stir.sign({ ...call, ...more })).toMatchObject({ kind: 'unsigned' })
})

/** A signing service; `answer` gets what it is asked for. */
async function openService(answer: (request: Asked, response: http.ServerResponse) => void) {
  const asked: { readonly headers: http.IncomingHttpHeaders; readonly request: Asked }[] = []
  const server = http.createServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      if (request.url !== '/base/stir/v1/signing') return response.writeHead(404).end()
      const { signingRequest } = JSON.parse(body) as { signingRequest: Asked }
      asked.push({ headers: request.headers, request: signingRequest })
      return answer(signingRequest, response)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return { asked, signingService: { url: `http://127.0.0.1:${port}/base`, token: 'a token' } }
}

interface Asked {
  readonly attest: 'A' | 'B' | 'C'
  readonly orig: { readonly tn: string }
  readonly dest: { readonly tn: readonly string[] }
  readonly iat: number
  readonly origid: string
}

const serviceIdentity = ({ attest, orig, dest, iat, origid: id }: Asked): string => {
  const claims = { attest, orig: orig.tn, dest: dest.tn[0] ?? '', iat, origid: id }
  const input = `${passportHeader('shaken', 'https://s.example/c')}.${shakenPayload(claims)}`
  return identityText(`${input}.${'A'.repeat(86)}`, 'https://s.example/c', 'shaken')
}

const answerWith = (response: http.ServerResponse, body: unknown): void =>
  void response.setHeader('content-type', 'application/json').end(JSON.stringify(body))

test('a signing service gets the claims in the form of ATIS-1000082, and its answer is used', async () => {
  const { asked, signingService } = await openService((request, response) =>
    answerWith(response, { signingResponse: { identity: serviceIdentity(request) } }),
  )
  const { stir } = await openStir({ signingService, keys: [keyRecord(signer, { tenantId: 7 })] })
  const [identity = ''] = identitiesOf(await stir.sign(call))
  expect(identity).toContain('info=<https://s.example/c>')
  expect(asked[0]?.headers.authorization).toBe('Bearer a token')
  expect(asked[0]?.request).toEqual({
    ...{ attest: 'A', orig: { tn: ORIG }, dest: { tn: [DEST] }, iat: now, origid },
  })
  // A tenant's own key comes first.
  expect(identitiesOf(await stir.sign({ ...call, tenantId: 7 }))[0]).toContain('tollgate.example')
  expect(asked).toHaveLength(1)
})

test.each<[string, (request: Asked, response: http.ServerResponse) => void]>([
  ['does not answer', () => undefined],
  ['answers something else', (_, response) => answerWith(response, { a: 1 })],
  [
    'signs another number',
    (request, response) =>
      answerWith(response, {
        signingResponse: { identity: serviceIdentity({ ...request, orig: { tn: '1999' } }) },
      }),
  ],
  [
    'breaks the header',
    (request, response) =>
      answerWith(response, {
        signingResponse: { identity: `${serviceIdentity(request)}\r\nVia: evil` },
      }),
  ],
  ['refuses', (_, response) => void response.writeHead(400).end()],
  [
    'answers without end',
    (_, response) => {
      response.setHeader('content-type', 'application/json')
      const timer = setInterval(() => response.write(' '.repeat(10_000)), 1)
      response.on('close', () => clearInterval(timer))
    },
  ],
])(
  'a service that %s leaves the call unsigned, or to the key of the platform',
  async (_, answer) => {
    const { signingService } = await openService(answer)
    const alone = await openStir({ signingService })
    expect(await alone.stir.sign(call)).toMatchObject({ kind: 'unsigned' })
    const both = await openStir({ signingService, keys: [keyRecord(signer)] })
    expect(identitiesOf(await both.stir.sign(call))[0]).toContain('tollgate.example')
  },
)

test('a service that fails again and again is left out', async () => {
  const { asked, signingService } = await openService(
    (_, response) => void response.writeHead(500).end(),
  )
  const { stir } = await openStir({ signingService })
  for (let index = 0; index < 15; index += 1) await stir.sign(call)
  expect(asked).toHaveLength(10)
  expect(stir.telemetry()).toMatchObject({ stir_signing_is_resting: 1, stir_unsigned_total: 15 })
})
