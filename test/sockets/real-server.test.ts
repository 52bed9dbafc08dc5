/** What a real drachtio-server does differently from ours, and what a server that goes away proves. */
import { afterEach, expect, test } from 'vitest'
import { candidate, type CallRig, startCallRig } from '../support/call-rig.ts'
import { DrachtioPeer, type Outgoing } from '../support/drachtio-peer.ts'
import { promisedProbe } from '../support/promised-probe.ts'
import { sdp } from '../support/sip-peer.ts'
import { eventually } from '../support/waiting.ts'

let rig: CallRig
let servers: DrachtioPeer[] = []

afterEach(async () => {
  await rig.stop()
  for (const server of servers.splice(0)) await server.crash()
})

async function start(count: number): Promise<readonly DrachtioPeer[]> {
  servers = []
  for (let i = 0; i < count; i++)
    servers.push(await DrachtioPeer.open(`udp/198.51.100.${10 + i}:5060`))
  rig = await startCallRig({ servers: servers.map(({ address }) => address) })
  await eventually(() =>
    expect(servers.map(({ welcomes }) => welcomes)).toEqual(servers.map(() => 1)),
  )
  rig.answers.candidates.push(candidate(1, 5_070), candidate(2, 5_071))
  return servers
}

/** Whichever server our INVITE went by. */
async function called(): Promise<{ readonly server: DrachtioPeer; readonly invite: Outgoing }> {
  const isHere = ({ outgoing }: DrachtioPeer): boolean =>
    outgoing.some(({ method }) => method === 'INVITE')
  await eventually(() => expect(servers.some(isHere)).toBe(true))
  const server = servers.find(isHere)
  if (server === undefined) throw new Error('no INVITE')
  return { server, invite: await server.nextOutgoing('INVITE') }
}

test('a phone is called by the server on which it has registered', async () => {
  const [first, second] = await start(2)
  if (first === undefined || second === undefined) return
  rig.answers.registered = { status: 200, reason: 'OK', headers: {} }
  await second.ask('REGISTER')
  const [domain, source] = ['acme.example', { protocol: 'udp', address: '127.0.0.1', port: 5_080 }]
  rig.answers.inbound = { kind: 'extension', extension: '102', domain, tenantId: 3 }
  rig.answers.extensions.set('102@acme.example', {
    extensionId: 2,
    tenantId: 3,
    customerId: null,
    domain,
    extension: '102',
    displayName: 'Bob',
    isVoicemailEnabled: false,
    secrets: { MD5: '', 'SHA-256': '' },
  })
  rig.answers.contacts.set('102@acme.example', [
    {
      uri: 'sip:102@10.1.1.1:40000',
      routes: [],
      q: 1_000,
      source,
      nextHop: 'sip:127.0.0.1:5080;transport=udp',
    },
  ])
  for (let i = 0; i < 2; i++) {
    first.invite()
    const { server, invite } = await called()
    expect(server).toBe(second)
    server.answer(invite, 486)
    await rig.record()
  }
})

test('a node that answers OPTIONS and ignores calls is left within NODE_PROGRESS_TIMEOUT_MS', async () => {
  const [only] = await start(1)
  if (only === undefined) return
  only.invite()
  const { invite } = await called()
  await only.seen()
  await rig.advance(1_600)
  only.answer(await only.nextOutgoing('OPTIONS'), 200)
  await only.seen()
  await rig.advance(4_300)
  expect(only.outgoing).toEqual([])
  await rig.advance(200)
  expect((await only.nextOutgoing('CANCEL')).transactionId).toBe(invite.transactionId)
  const next = await only.nextOutgoing('INVITE')
  only.answer(next, 200, { body: sdp('answer') })
  await only.next(200)
  const seen = [
    [1, 'failed'],
    [2, 'answered'],
  ]
  await eventually(() => expect(rig.outcomes).toEqual(seen))
})

test('a server that hangs is away: no node is blamed for its silence', async () => {
  const [only] = await start(1)
  if (only === undefined) return
  const send = promisedProbe(rig.client, rig.time.schedule)
  only.invite()
  await eventually(() => expect(rig.calls.size).toBe(1))
  await called()
  only.hang()
  const probe = send('sip:127.0.0.1:5070', 400)
  await rig.advance(300)
  expect(await probe).toEqual({ kind: 'unsent' })
})

test('a probe that is under way when the server goes away says nothing of its node', async () => {
  const [only] = await start(1)
  if (only === undefined) return
  const send = promisedProbe(rig.client, rig.time.schedule)
  const probe = send('sip:127.0.0.1:5070', 400)
  await only.nextOutgoing('OPTIONS')
  await only.crash()
  expect(await probe).toEqual({ kind: 'unsent' })
  expect(await send('sip:127.0.0.1:5070', 400)).toEqual({ kind: 'unsent' })
})

test('a caller that requires 100rel hears from us with a Contact, without which it could not answer', async () => {
  const [only] = await start(1)
  if (only === undefined) return
  only.invite({ headers: ['Require: 100rel'] })
  const { invite } = await called()
  only.answer(invite, 180)
  only.answer(invite, 183, { body: sdp('early') })
  const progress = [await only.next(180), await only.next(183)]
  expect(progress.map(({ sip }) => /^require: (.*)$/im.exec(sip)?.[1]?.trim())).toEqual([
    '100rel',
    '100rel',
  ])
  expect(only.responses.filter((text) => text.includes('\r\nContact: '))).toHaveLength(2)
  only.answer(invite, 200, { body: sdp('early') })
  expect((await only.next(200)).sip).not.toMatch(/100rel/)
})
