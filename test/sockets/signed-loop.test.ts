/** Calls that we sign, verified by us as if another network had: with real keys and certificates. */
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Stir } from '../../engine/stir/stir.ts'
import { type CallRig, startCallRig } from '../support/call-rig.ts'
import { Authority } from '../support/certificates.ts'
import { ManualTime } from '../support/manual-time.ts'
import { type PeerMessage, sdp, type SipPeer } from '../support/sip-peer.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { VirtualWorld } from '../support/virtual-world.ts'
import {
  addExtensions,
  carrierOf,
  carrierOrigin,
  extensionRecord,
  home,
  phoneOf,
} from '../engine/call/steps.ts'

let rig: CallRig
let stir: Stir
let server: Server

beforeEach(async () => {
  const folder = temporaryFolder()
  const authority = new Authority(folder)
  const files = authority.sign('north', 'DNS:north.example')
  const certificate = readFileSync(files.certFile, 'utf8')
  server = createServer((_request, response) => response.end(certificate))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const x5u = `http://127.0.0.1:${(server.address() as AddressInfo).port}/north.pem`
  // The certificates begin now.
  const time = new ManualTime(Date.now() + 1_000)
  const key = { id: 1, tenantId: null, name: 'north', certificate, x5u, isActive: true }
  const privateKey = readFileSync(files.keyFile, 'utf8')
  const root = { name: 'root', certificate: readFileSync(authority.file, 'utf8') }
  stir = new Stir({
    load: () =>
      Promise.resolve({
        keys: [{ ...key, privateKey, validFrom: null, validUntil: null }],
        authorities: [root],
      }),
    authoritiesFile: () => Promise.resolve(undefined),
    publicUrl: undefined,
    maxAgeSeconds: 60,
    hosts: [],
    signingService: undefined,
    resolve: () => Promise.resolve([]),
    allowPrivate: true,
    isOwn: () => false,
    now: time.wallNow,
    steadyNow: time.now,
    schedule: (act, ms) => {
      const timer = setTimeout(act, ms)
      return () => clearTimeout(timer)
    },
    log: () => undefined,
  })
  await stir.reload()
  rig = await startCallRig({ stir, beside: { time, world: new VirtualWorld(time) } })
  rig.answers.knowsNumber = true
  await knowsCertificate()
})
afterEach(async () => {
  await rig.stop()
  stir.stop()
  server.close()
})

/** The certificate is fetched once, by real sockets, for which virtual time does not wait. */
async function knowsCertificate(): Promise<void> {
  const about = { tenantId: null, orig: '12155550001', dest: '12155550002', origid: 'x' }
  const iat = Math.floor(rig.time.wallNow() / 1_000)
  const signed = await stir.sign({ ...about, attestation: 'A', iat })
  const identities = signed.kind === 'signed' ? signed.identities : []
  expect(await stir.verify({ ...about, identities, now: iat })).toMatchObject({
    verification: 'passed',
  })
}

/** A node calls out by a carrier that wants signatures; returns the INVITE as the carrier has it. */
async function calledOut(): Promise<PeerMessage> {
  rig.answers.origin = { kind: 'node', nodeId: 1, setId: 1 }
  const carrier = await carrierOf(rig, { number: '+12155550113', isSigned: true })
  const caller = await rig.caller()
  const headers = ['P-Asserted-Identity: <sip:+12155550112@pbx.example>']
  caller.request('INVITE', caller.leg(rig.uri('+12155550113')), { body: sdp('offer'), headers })
  return refused(carrier, caller)
}

async function refused(called: SipPeer, caller: SipPeer): Promise<PeerMessage> {
  const invite = await called.next('INVITE')
  called.reply(invite, 486, { tag: 'b' })
  await caller.next('486 INVITE')
  await rig.record()
  return invite
}

/** The same INVITE comes in from a carrier that must sign; `changed`: by somebody on the way. */
async function comesIn(
  out: PeerMessage,
  {
    orig = '+12155550112',
    dest = '+12155550113',
    identities = out.all('Identity'),
    callId = 'first',
  } = {},
) {
  rig.answers.origin = carrierOrigin({ verify: 'refuse' })
  const caller = await rig.caller()
  const leg = { ...caller.leg(rig.uri(dest)), callId }
  const headers = [
    `P-Asserted-Identity: <sip:${orig}@north.example>`,
    ...identities.map((each) => `Identity: ${each}`),
    `Date: ${out.get('Date')}`,
  ]
  caller.request('INVITE', leg, { body: sdp('offer'), headers })
  return caller
}

test('loop out and in: what we have signed passes, with its attestation', async () => {
  const out = await calledOut()
  const node = await rig.node()
  const caller = await comesIn(out)
  const invite = await node.next('INVITE')
  node.reply(invite, 486, { tag: 'b' })
  await caller.next('486 INVITE')
  expect(await rig.record()).toMatchObject({ verification: 'passed', attestation: 'B' })
})

test.each([
  ['another caller', { orig: '+12155550999' }, 438],
  ['another called number', { dest: '+12155550999' }, 438],
  ['a changed signature', { identities: ['a.b.c;info=<https://north.example>'] }, 438],
  ['no signature', { identities: [] }, 428],
])('%s is refused', async (_, changed, status) => {
  const caller = await comesIn(await calledOut(), changed)
  const answer = await caller.next(`${status} INVITE`)
  expect(answer.get('Reason')).toMatch(`STIR;cause=${status};text="`)
})

test('an old signature is refused with 403, and one that another call has used with 438', async () => {
  const out = await calledOut()
  const node = await rig.node()
  await refused(node, await comesIn(out))
  await refused(node, await comesIn(out, { callId: 'first' }))
  const replay = await comesIn(out, { callId: 'second' })
  await replay.next('438 INVITE')
  await rig.advance(120_000)
  const late = await comesIn(out)
  expect((await late.next('403 INVITE')).get('Reason')).toContain('cause=403')
})

test('a forward with div passes at the next network', async () => {
  const out = await calledOut()
  const desk = await phoneOf(rig, '102')
  addExtensions(rig, extensionRecord('102'))
  rig.answers.inbound = { kind: 'extension', extension: '102', tenantId: 3, domain: home }
  const carrier = await carrierOf(rig, { number: '+12155550199', isSigned: true })
  const caller = await comesIn(out)
  desk.contact = 'tel:+1-215-555-0199'
  desk.reply(await desk.next('INVITE'), 302, { tag: 'f' })
  const forwarded = await carrier.next('INVITE')
  expect(forwarded.all('Identity')).toHaveLength(2)
  carrier.reply(forwarded, 486, { tag: 'b' })
  await caller.next('486 INVITE')
  const verified = await stir.verify({
    identities: forwarded.all('Identity'),
    orig: '+12155550112',
    dest: '+12155550199',
    now: Math.floor(rig.time.wallNow() / 1_000),
  })
  expect(verified).toMatchObject({ verification: 'passed', attestation: 'B' })
})
