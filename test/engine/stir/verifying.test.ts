import { afterAll, expect, test } from 'vitest'
import {
  keyRecord,
  callWith,
  DEST,
  now,
  openStir,
  ORIG,
  origid,
  serve,
  signedByJose,
} from '../../support/stir-rig.ts'
import { providerList, rangeList, StirPki } from '../../support/stir-pki.ts'

const pki = new StirPki()
afterAll(() => pki.remove())
const signer = pki.sign('SHAKEN 1234', { tnAuthList: providerList('1234') })
pki.authority('intermediate')
const below = pki.sign('below', { by: 'intermediate' })

async function open(chain = signer.chain, more: Parameters<typeof openStir>[0] = {}) {
  const server = await serve({ '/shaken.pem': chain })
  const { stir } = await openStir({ trusted: [pki.root], ...more })
  return { stir, x5u: server.url('/shaken.pem'), ...server }
}

const passed = {
  verification: 'passed',
  attestation: 'A',
  origid,
  signer: 'SHAKEN 1234',
}

test('a signature of another implementation holds, and its certificate is fetched once', async () => {
  const { stir, x5u, asked } = await open()
  const call = callWith(await signedByJose(signer, x5u))
  const first = stir.verify(call)
  const second = stir.verify(call)
  expect(first).toBeInstanceOf(Promise)
  expect(await first).toEqual(passed)
  expect(await second).toEqual(passed)
  // Without a promise, now that the certificate is known.
  expect(stir.verify(call)).toEqual(passed)
  expect(asked).toEqual(['/shaken.pem'])
})

test('numbers are compared in canonical form', async () => {
  const { stir, x5u } = await open()
  const identity = await signedByJose(signer, x5u, { orig: { tn: '+1-215-555-1212' } })
  expect(await stir.verify(callWith(identity))).toEqual(passed)
})

test('our own signature holds', async () => {
  const { stir, x5u } = await open(signer.chain, {})
  const ours = await openStir({ keys: [keyRecord(signer, { x5u })] })
  const signed = await ours.stir.sign({
    ...{ tenantId: null, orig: `+${ORIG}`, dest: `+${DEST}`, attestation: 'B' },
    ...{ origid, iat: now },
  })
  if (signed.kind !== 'signed') throw new Error(signed.why)
  expect(await stir.verify(callWith(...signed.identities))).toEqual({
    ...passed,
    attestation: 'B',
  })
})

test('a chain over another authority leads to the root, in PEM; a certificate alone in DER', async () => {
  const { stir, x5u, answers, url } = await open(below.chain)
  expect(await stir.verify(callWith(await signedByJose(below, x5u)))).toMatchObject({
    verification: 'passed',
    signer: 'below',
  })
  const base64 = signer.certificate.replaceAll(/-----[^-]+-----|\s/g, '')
  answers['/der'] = Buffer.from(base64, 'base64')
  expect(await stir.verify(callWith(await signedByJose(signer, url('/der'))))).toEqual(passed)
})

test('without an Identity header, or with types that nobody knows alone, there is none', async () => {
  const { stir, x5u } = await open()
  expect(stir.verify(callWith())).toEqual({ verification: 'none' })
  const other = await signedByJose(signer, x5u, {}, { ppt: 'rph' })
  expect(stir.verify(callWith(other))).toEqual({ verification: 'none' })
  const both = callWith(other, await signedByJose(signer, x5u))
  expect(await stir.verify(both)).toEqual(passed)
})

test('the compact form of RFC 8225 holds with a Date header', async () => {
  const { stir, x5u } = await open()
  const whole = await signedByJose(signer, x5u, {}, { ppt: '' })
  // Our own order of keys is that of RFC 8225 §9; jose keeps that of the test.
  const { sign } = await import('node:crypto')
  const base64 = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const input = [
    base64({ alg: 'ES256', typ: 'passport', x5u }),
    base64({ dest: { tn: [DEST] }, iat: now, orig: { tn: ORIG } }),
  ].join('.')
  const signature = sign('sha256', Buffer.from(input), {
    key: signer.key,
    dsaEncoding: 'ieee-p1363',
  })
  const compact = `..${signature.toString('base64url')};info=<${x5u}>;alg=ES256`
  expect(await stir.verify({ ...callWith(compact), date: now })).toMatchObject({
    verification: 'passed',
    attestation: null,
  })
  expect(await stir.verify(callWith(whole))).toMatchObject({ verification: 'passed' })
  expect(stir.verify(callWith(compact))).toMatchObject({ status: 438 })
})

test.each([
  ['too old', { iat: now - 61 }, {}, 403],
  ['just not too old', { iat: now - 60 }, {}, undefined],
  ['from the future', { iat: now + 61 }, {}, 403],
  ['with an old Date header', {}, { date: now - 61 }, 403],
  ['with a Date header of another time', { iat: now - 40 }, { date: now + 40 }, 403],
  ['from another number', { orig: { tn: '12155559999' } }, {}, 438],
  ['to another number', { dest: { tn: ['12155559999'] } }, {}, 438],
  ['to several numbers', { dest: { tn: ['12155559999', DEST] } }, {}, undefined],
  ['from a URI', { orig: { uri: 'sip:a@b.example' } }, {}, 438],
  ['without attestation', { attest: 'D' }, {}, 438],
])('a call %s', async (_, claims, more, status) => {
  const { stir, x5u } = await open()
  const answer = await stir.verify({
    ...callWith(await signedByJose(signer, x5u, claims)),
    ...more,
  })
  if (status === undefined) expect(answer).toEqual(passed)
  else expect(answer).toMatchObject({ verification: 'failed', status })
})

test('a PASSporT of another call is a replay; the failover of the same call is none', async () => {
  const { stir, x5u } = await open()
  const call = callWith(await signedByJose(signer, x5u))
  expect(await stir.verify({ ...call, callId: 'a' })).toEqual(passed)
  expect(stir.verify({ ...call, callId: 'a' })).toEqual(passed)
  expect(stir.verify({ ...call, callId: 'b' })).toMatchObject({ status: 438 })
})

test('a diverted call holds over its chain, and the first PASSporT may be as old as it rang', async () => {
  const { stir, x5u } = await open()
  const first = await signedByJose(signer, x5u, { iat: now - 200 })
  const div = (from: string, to: string, iat = now) =>
    signedByJose(signer, x5u, { dest: { tn: [to] }, div: { tn: from }, iat }, { ppt: 'div' })
  const steps = [await div(DEST, '12155551214', now - 100), await div('12155551214', '12155551215')]
  const to = { dest: '12155551215' }
  expect(await stir.verify({ ...callWith(first, ...steps), ...to })).toEqual(passed)
  expect(stir.verify({ ...callWith(...steps.toReversed(), first), ...to })).toEqual(passed)
  // A link is missing; or the first call is; or the chain goes in a circle.
  expect(stir.verify({ ...callWith(first, steps[1] ?? ''), ...to })).toMatchObject({ status: 438 })
  expect(stir.verify({ ...callWith(...steps), ...to })).toMatchObject({ status: 438 })
  const circle = [await div('1', '12155551215'), await div('12155551215', '1')]
  expect(stir.verify({ ...callWith(first, ...circle), ...to })).toMatchObject({ status: 438 })
  const old = await div('12155551214', '12155551215', now - 61)
  const late = callWith(first, steps[0] ?? '', old)
  expect(stir.verify({ ...late, ...to })).toMatchObject({ status: 403 })
})

test('a certificate of numbers speaks for these numbers alone', async () => {
  const tens = pki.sign('tens', { tnAuthList: rangeList('12155551210', 10) })
  const { stir, x5u } = await open(tens.chain)
  const from = async (number: string) => {
    const identity = await signedByJose(tens, x5u, { orig: { tn: number } })
    return stir.verify({ ...callWith(identity), orig: number })
  }
  expect(await from('12155551219')).toMatchObject({ verification: 'passed' })
  expect(await from('12155551220')).toMatchObject({ status: 437 })
})

test('a revoked certificate is refused, and one whose list cannot be had', async () => {
  const lists = await serve({})
  const listUrl = lists.url('/list')
  const revoked = pki.sign('revoked', { listUrl })
  const kept = pki.sign('kept', { listUrl })
  const missing = pki.sign('missing', { listUrl: lists.url('/none') })
  lists.answers['/list'] = pki.revocationList(revoked)
  for (const [of, status] of [
    [revoked, 437],
    [kept, undefined],
    [missing, 436],
  ] as const) {
    const { stir, x5u } = await open(of.chain)
    expect(await stir.verify(callWith(await signedByJose(of, x5u)))).toMatchObject(
      status === undefined ? { verification: 'passed' } : { status },
    )
  }
})

const stranger = new StirPki('stranger')
afterAll(() => stranger.remove())
pki.authority('none', { extensions: ['basicConstraints=CA:false'] })
pki.authority('unable', { extensions: ['basicConstraints=CA:true', 'keyUsage=digitalSignature'] })
pki.authority('shallow', {
  extensions: ['basicConstraints=CA:true,pathlen:0', 'keyUsage=keyCertSign'],
})
pki.authority('deep', {
  by: 'shallow',
  extensions: ['basicConstraints=CA:true', 'keyUsage=keyCertSign'],
})
const deep = pki.sign('under deep', { by: 'deep' })

test.each([
  ['of a stranger', stranger.sign('a')],
  ['below one that is no authority', pki.sign('b', { by: 'none' })],
  ['below an authority that may not sign', pki.sign('c', { by: 'unable' })],
  ['of an authority', pki.sign('d', { extensions: ['basicConstraints=CA:true'] })],
  ['that may not sign data', pki.sign('e', { extensions: ['keyUsage=keyAgreement'] })],
  [
    'with an extension that nobody knows',
    pki.sign('f', { extensions: ['1.2.3.4=critical,DER:0500'] }),
  ],
  ['with a malformed TNAuthList', pki.sign('g', { tnAuthList: '0500' })],
  ['of a longer chain than is allowed', { ...deep, chain: `${deep.chain}${pki.root}` }],
  ['that has expired', pki.sign('h', { days: 0 })],
])('a certificate %s is refused with 437', async (_, of) => {
  const { stir, x5u } = await open(of.chain, { now: () => now * 1_000 + 120_000 })
  const identity = await signedByJose(of, x5u)
  expect(await stir.verify(callWith(identity))).toMatchObject({ status: 437 })
})

test('authorities that are trusted no more let nothing pass', async () => {
  const trusted = [{ name: 'root', certificate: pki.root }]
  const load = () => Promise.resolve({ keys: [], authorities: trusted })
  const { stir, x5u } = await open(signer.chain, { load })
  const call = callWith(await signedByJose(signer, x5u))
  expect(await stir.verify(call)).toEqual(passed)
  trusted.length = 0
  await stir.reload()
  expect(await stir.verify(call)).toMatchObject({ status: 437 })
})
