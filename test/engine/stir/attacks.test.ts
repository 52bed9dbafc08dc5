/** What somebody can do who writes an Identity header, or answers where it points. */
import { isIP } from 'node:net'
import type { ServerResponse } from 'node:http'
import { afterAll, expect, test } from 'vitest'
import { readRevocationList } from '../../../engine/stir/revocation-list.ts'
import { BIT_STRING, SEQUENCE } from '../../../schema/stir/der.ts'
import { readCertificates, readPrivateKey } from '../../../schema/stir/pem.ts'
import { callWith, now, openStir, serve, signedByJose } from '../../support/stir-rig.ts'
import { StirPki } from '../../support/stir-pki.ts'

const pki = new StirPki()
afterAll(() => pki.remove())
const signer = pki.sign('signer')
const stranger = new StirPki('stranger')
afterAll(() => stranger.remove())
const strange = stranger.sign('signer')

async function open(more: Parameters<typeof openStir>[0] = {}) {
  const server = await serve({ '/a.pem': signer.chain })
  const { stir } = await openStir({ trusted: [pki.root], ...more })
  return { stir, x5u: server.url('/a.pem'), ...server }
}

/** A valid header, and what an attacker makes of it. */
const forged: readonly [string, (identity: string, x5u: string) => string | Promise<string>][] = [
  ['nothing', () => ''],
  ['a header of blanks', () => ' '.repeat(1_000)],
  ['a huge header', (identity) => `${identity};x="${'a'.repeat(9_000)}"`],
  ['a huge payload', (identity) => identity.replace('.', `.${'e'.repeat(9_000)}`)],
  ['two parts', (identity) => identity.replace('.', '')],
  ['four parts', (identity) => identity.replace('.', '.e30.')],
  ['another signature', (identity) => identity.replace(/\.[\w-]{6}(?=[\w-]{80};)/, '.AAAAAA')],
  ['a short signature', (identity) => identity.replace(/[\w-]{4};/, ';')],
  ['a signature of zeros', (identity) => identity.replace(/[\w-]{86};/, `${'A'.repeat(86)};`)],
  ['a signature in DER', (identity) => identity.replace(/[\w-]{86};/, `${'M'.repeat(96)};`)],
  ['another payload', (identity) => identity.replace(/\.e/, '.f')],
  ['no info', (identity) => identity.replace(/;info=<[^>]*>/, '')],
  ['another info', (identity) => identity.replace('/a.pem>', '/b.pem>')],
  ['two infos', (identity, x5u) => `${identity};info=<${x5u}>`],
  ['info without brackets', (identity) => identity.replace(/<|>/g, '')],
  ['a line break', (identity) => `${identity}\r\nX: y`],
  ['other characters', (identity) => `${identity};x=ä`],
  ['two ppts', (identity) => `${identity};ppt=shaken`],
  ['another ppt', (identity) => identity.replace('ppt="shaken"', 'ppt="div"')],
  ['another algorithm', (identity) => identity.replace('alg=ES256', 'alg=none')],
  ['alg none inside', (_, x5u) => made({ alg: 'none' }, {}, x5u)],
  ['alg HS256 inside', (_, x5u) => made({ alg: 'HS256' }, {}, x5u)],
  ['another type', (_, x5u) => signedByJose(signer, x5u, {}, { header: { typ: 'JWT' } })],
  [
    'critical parameters',
    (_, x5u) => made({ alg: 'ES256', typ: 'passport', crit: ['x'] }, {}, x5u),
  ],
  [
    'no x5u',
    () => made({ alg: 'ES256', typ: 'passport', ppt: 'shaken' }, {}, '', 'https://a.example/'),
  ],
  ['another x5u', (_, x5u) => signedByJose(signer, x5u, {}, { header: { x5u: `${x5u}?` } })],
  ['a deep payload', (_, x5u) => raw('['.repeat(500) + ']'.repeat(500), x5u)],
  ['a list as payload', (_, x5u) => raw('[]', x5u)],
  ['no JSON', (_, x5u) => raw('{"', x5u)],
  ['broken UTF-8', (_, x5u) => raw(Buffer.from([0x7b, 0xff, 0x7d]), x5u)],
  ['a text as iat', (_, x5u) => signedByJose(signer, x5u, { iat: String(now) })],
  ['an endless iat', (_, x5u) => raw(`{"iat":1e999,"orig":{"tn":"1"},"dest":{"tn":["1"]}}`, x5u)],
  [
    'many destinations',
    (_, x5u) => signedByJose(signer, x5u, { dest: { tn: Array<string>(100).fill('1') } }),
  ],
  ['no destination', (_, x5u) => signedByJose(signer, x5u, { dest: { tn: [] } })],
  ['an object as number', (_, x5u) => signedByJose(signer, x5u, { orig: { tn: {} } })],
  ['the key of a stranger', (_, x5u) => signedByJose(strange, x5u)],
  ['no origid', (_, x5u) => signedByJose(signer, x5u, { origid: '' })],
]

const base64 = (value: string | Buffer): string => Buffer.from(value).toString('base64url')

const made = (head: object, claims: object, x5u: string, info = x5u): string =>
  `${base64(JSON.stringify({ ...head, ...(x5u !== '' && { x5u }) }))}.` +
  `${base64(JSON.stringify(claims))}.${'A'.repeat(86)};info=<${info}>`

const raw = (payload: string | Buffer, x5u: string): string =>
  `${base64(JSON.stringify({ alg: 'ES256', typ: 'passport', ppt: 'shaken', x5u }))}.` +
  `${base64(payload)}.${'A'.repeat(86)};info=<${x5u}>`

test.each(forged)('%s never passes', async (_, forge) => {
  const { stir, x5u } = await open()
  const identity = await signedByJose(signer, x5u)
  // Also with the certificate in memory, and beside a header that holds.
  expect(await stir.verify(callWith(identity))).toMatchObject({ verification: 'passed' })
  const bad = await forge(identity, x5u)
  for (const call of [callWith(bad), callWith(identity, bad), callWith(bad, identity)])
    expect(await stir.verify(call)).toMatchObject({ verification: 'failed' })
})

test('what cannot pass costs no request', async () => {
  const { stir, url, asked } = await open()
  const wrong = [{ iat: now - 100 }, { orig: { tn: '1' } }, { dest: { tn: ['1'] } }]
  for (const claims of wrong)
    expect(stir.verify(callWith(await signedByJose(signer, url('/x'), claims)))).toMatchObject({
      verification: 'failed',
    })
  expect(asked).toEqual([])
})

test('more headers than ten are not read', async () => {
  const { stir, x5u } = await open()
  const identity = await signedByJose(signer, x5u)
  const many = Array<string>(11).fill(identity)
  expect(stir.verify(callWith(...many))).toMatchObject({ status: 438 })
})

test.each([
  'https://127.0.0.1/a',
  'https://10.0.0.1/a',
  'https://[::1]/a',
  'https://[::ffff:10.0.0.1]/a',
  'https://169.254.169.254/latest',
  'https://2130706433/a',
  'https://localhost/a',
  'https://db.internal/a',
  'http://certificates.example/a',
  'ftp://certificates.example/a',
  'https://user:word@certificates.example/a',
  'https://certificates.example/a#b',
  'https://certificates.example:22/a',
  'https://certificates.example:5060/a',
  'https://inside.example/a',
  'file:///etc/passwd',
  'https://',
  `https://certificates.example/${'a'.repeat(990)}`,
])('a certificate at %s is not fetched', async (x5u) => {
  const looked: string[] = []
  const { stir } = await open({
    allowPrivate: false,
    resolve: async (host) => {
      looked.push(host)
      const address = '10.0.0.1'
      return [{ address, family: isIP(address) }]
    },
  })
  const answer = await stir.verify(callWith(await signedByJose(signer, x5u)))
  expect(answer).toMatchObject({ verification: 'failed' })
  expect(looked).toEqual(x5u.includes('inside') ? ['inside.example'] : [])
})

test('only hosts that are listed are asked', async () => {
  const { stir } = await open({ hosts: ['certificates.example'] })
  expect(
    await stir.verify(callWith(await signedByJose(signer, 'https://other.example/a'))),
  ).toMatchObject({ status: 436 })
})

const answers: readonly [string, number, (response: ServerResponse) => void][] = [
  ['redirects', 436, (response) => void response.writeHead(302, { location: '/a.pem' }).end()],
  ['is absent', 436, (response) => void response.writeHead(404).end(signer.chain)],
  ['is huge', 436, (response) => void response.end('a'.repeat(40_000))],
  [
    'announces too much',
    436,
    (response) => void response.writeHead(200, { 'content-length': '99999999' }).write('a'),
  ],
  ['never begins', 436, () => undefined],
  [
    'never ends',
    436,
    (response) => {
      const timer = setInterval(() => response.write('a'), 10)
      response.on('close', () => clearInterval(timer))
    },
  ],
  [
    'is cut off',
    436,
    (response) => {
      response.writeHead(200, { 'content-length': '100' })
      response.write('a', () => response.destroy())
    },
  ],
  ['is empty', 437, (response) => void response.end()],
  ['is a page', 437, (response) => void response.end('<html>')],
  ['is broken DER', 437, (response) => void response.end(Buffer.from([0x30, 0x82, 0xff, 0xff]))],
  ['has many certificates', 437, (response) => void response.end(signer.certificate.repeat(6))],
  ['is of a stranger', 437, (response) => void response.end(strange.chain)],
]

test.each(answers)('a certificate that %s is refused with %i', async (_, status, answer) => {
  const { stir, answers: all, url, asked } = await open()
  all['/bad'] = (_request, response) => answer(response)
  const call = callWith(await signedByJose(signer, url('/bad')))
  const before = performance.now()
  expect(await stir.verify(call)).toMatchObject({ verification: 'failed', status })
  expect(performance.now() - before).toBeLessThan(4_000)
  // The failure is kept, so that the next call costs nothing.
  expect(stir.verify(call)).toMatchObject({ verification: 'failed', status })
  expect(asked).toEqual(['/bad'])
})

test.each([
  ['blanks', ' '.repeat(32_768)],
  ['line breaks', '\n'.repeat(32_768)],
  ['begins without an end', '-----BEGIN CERTIFICATE-----'.repeat(1_213)],
  ['halves of marks', '-----BEGIN '.repeat(2_970)],
])('a text of %s costs no time where a certificate is expected', (_, text) => {
  const before = performance.now()
  expect(readCertificates(text)).toBe('has no certificate in PEM')
  expect(readPrivateKey(text)).toContain('private key')
  expect(performance.now() - before).toBeLessThan(25)
})

test('a revocation list costs no more than its bytes', () => {
  const before = performance.now()
  expect(readRevocationList(Buffer.from('-----BEGIN X509 CRL-----'.repeat(20_000)))).toBeUndefined()
  expect(readRevocationList(listOfLongName())).toBeDefined()
  expect(performance.now() - before).toBeLessThan(1_000)
})

/** 10,000 entries, all of an issuer whose name is nearly as long as a list may be. */
function listOfLongName(): Buffer {
  const entries = der(SEQUENCE, ...Array<Buffer>(10_000).fill(Buffer.from([SEQUENCE, 3, 2, 1, 5])))
  const time = der(0x17, Buffer.from('250101000000Z'))
  const list = [der(SEQUENCE), der(SEQUENCE, Buffer.alloc(450_000)), time, entries]
  const algorithm = Buffer.from('06082a8648ce3d040302', 'hex')
  return der(
    SEQUENCE,
    ...[der(SEQUENCE, ...list), der(SEQUENCE, algorithm), der(BIT_STRING, Buffer.from([0, 1]))],
  )
}

function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts)
  const length = Buffer.alloc(4)
  length.writeUInt32BE(content.length)
  return Buffer.concat([Buffer.from([tag, 0x84]), length, content])
}

test('a failure is asked for again after its time, and a certificate too', async () => {
  let time = now * 1_000
  const { stir, url, x5u, answers: all, asked } = await open({ now: () => time })
  const bad = callWith(await signedByJose(signer, url('/late')))
  expect(await stir.verify(bad)).toMatchObject({ status: 436 })
  all['/late'] = signer.chain
  time += 31_000
  expect(await stir.verify(bad)).toMatchObject({ verification: 'passed' })
  const good = callWith(await signedByJose(signer, x5u))
  await stir.verify(good)
  time += 3_601_000
  await stir.verify(good)
  expect(asked).toEqual(['/late', '/late', '/a.pem', '/a.pem'])
})

test('a flood of URLs opens few connections at once, keeps few failures, and drives nothing good out', async () => {
  const { stir, x5u, url, answers: all, asked } = await open()
  const good = callWith(await signedByJose(signer, x5u))
  await stir.verify(good)
  for (let index = 0; index < 1_500; index += 1) {
    const path = `/none/${index}`
    await stir.verify(callWith(await signedByJose(signer, url(path))))
  }
  expect(stir.telemetry()['stir_certificate_failures']).toBe(1_000)
  expect(stir.verify(good)).toMatchObject({ verification: 'passed' })
  // Of one host four at once; the others are told at once.
  all['/slow'] = () => undefined
  const before = asked.length
  const slow = await Promise.all(
    Array.from({ length: 20 }, (_, index) => signedByJose(signer, url(`/slow${index}`))),
  )
  for (const path of slow.keys()) all[`/slow${path}`] = () => undefined
  const verified = slow.map((identity) => Promise.resolve(stir.verify(callWith(identity))))
  await expect.poll(() => asked.length - before).toBe(4)
  expect(stir.telemetry()['stir_certificate_fetches']).toBe(4)
  const waiting = await Promise.all(verified)
  expect(new Set(waiting.map((answer) => answer.verification))).toEqual(new Set(['failed']))
  expect(stir.telemetry()['stir_certificate_fetches']).toBe(0)
}, 20_000)

test('the same URL is fetched once, however many calls wait for it', async () => {
  const { stir, x5u, asked } = await open()
  const call = callWith(await signedByJose(signer, x5u))
  const all = await Promise.all(
    Array.from({ length: 50 }, () => Promise.resolve(stir.verify(call))),
  )
  expect(all.every(({ verification }) => verification === 'passed')).toBe(true)
  expect(asked).toEqual(['/a.pem'])
})
