/**
 * Call control on drachtio-servers elsewhere, which a scripted peer stands for
 * (engine/sip-server/wire/README.md).
 */
import type { Log } from '../../schema/contracts/log.ts'
import { drachtioPort } from '../support/call-world.ts'
import { afterEach, expect, test } from 'vitest'
import { UserAgent } from '../../engine/call/user-agent/user-agent.ts'
import { candidate, type CallRig, granted, startCallRig } from '../support/call-rig.ts'
import { promisedProbe } from '../support/promised-probe.ts'
import { DrachtioPeer } from '../support/drachtio-peer.ts'
import { Authority, loopbackNames } from '../support/certificates.ts'
import { sdp } from '../support/sip-peer.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
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
    servers.push(await DrachtioPeer.open(`udp/198.51.100.${10 + i}:5060,wss/198.51.100.10:443`))
  rig = await startCallRig({ servers: servers.map(({ address }) => address) })
  await eventually(() =>
    expect(servers.map(({ welcomes }) => welcomes)).toEqual(servers.map(() => 1)),
  )
  rig.answers.candidates.push(candidate(1, 5_070), candidate(2, 5_071))
  return servers
}

async function startOne(): Promise<DrachtioPeer> {
  const [only] = await start(1)
  if (only === undefined) throw new Error('no server')
  return only
}

async function startTwo(): Promise<readonly [DrachtioPeer, DrachtioPeer]> {
  const [first, second] = await start(2)
  if (first === undefined || second === undefined) throw new Error('no servers')
  return [first, second]
}

/** Whichever server our INVITE went by. */
async function called() {
  const isHere = ({ outgoing }: DrachtioPeer): boolean =>
    outgoing.some(({ method }) => method === 'INVITE')
  await eventually(() => expect(servers.some(isHere)).toBe(true))
  const server = servers.find(isHere)
  if (server === undefined) throw new Error('no INVITE')
  return { server, invite: await server.nextOutgoing('INVITE') }
}

/** A call that comes in by `near` and is answered; `far` is the server of its called side. */
async function talk(near: DrachtioPeer) {
  const callId = near.invite()
  const { server: far, invite } = await called()
  far.answer(invite, 180)
  far.answer(invite, 200, sdp('answer'))
  await near.next(200)
  near.inDialog('ACK', callId)
  await rig.until(() => rig.calls.list().some(({ state }) => state === 'ACTIVE'))
  return { callId, far }
}

test('both legs of a call are on the server of its caller, and so is the CANCEL of its INVITE', async () => {
  for (const near of await start(2))
    for (let i = 0; i < 2; i++) {
      const callId = near.invite()
      const { server, invite } = await called()
      expect(server).toBe(near)
      near.inDialog('CANCEL', callId)
      const cancel = await near.nextOutgoing('CANCEL')
      expect(cancel.transactionId).toBe(invite.transactionId)
      near.answer(invite, 487)
      expect(await rig.record()).toMatchObject({ disposition: 'CANCELED' })
    }
})

test('when a server goes away its calls end with a record, and new ones are made on the others until it is back', async () => {
  const [first, second] = await startTwo()
  await talk(first)
  const survivor = await talk(second)
  await first.crash()
  expect(await rig.record()).toMatchObject({
    disposition: 'ANSWERED',
    denialCode: 'connection_lost',
  })
  expect(rig.calls.size).toBe(1)
  second.inDialog('BYE', survivor.callId, 'bye-2')
  expect(await rig.record()).toMatchObject({ disposition: 'ANSWERED', hangupBy: 'caller' })
  expect((await talk(second)).far).toBe(second)
  await first.listen()
  await connectedAgain(first)
  expect((await talk(first)).far).toBe(first)
})

const connectedAgain = (server: DrachtioPeer) =>
  eventually(() => {
    rig.time.advance(1_000)
    expect(server.welcomes).toBe(2)
  })

test('a real server keeps 100 back: a node that rings late is asked whether it is there', async () => {
  const only = await startOne()
  only.invite()
  const { invite } = await called()
  await only.seen()
  await rig.advance(1_600)
  const options = await only.nextOutgoing('OPTIONS')
  only.answer(options, 200)
  await only.seen()
  await rig.advance(3_000)
  only.answer(invite, 200, sdp('answer'))
  expect((await only.next(200)).sip).toContain(sdp('answer'))
})

test('a BYE that the server has sent by itself ends the call', async () => {
  const only = await startOne()
  const { callId } = await talk(only)
  only.unsolicitedBye(`${callId};from-tag=caller`, 'ACK timeout')
  await only.next('BYE')
  expect(await rig.record()).toMatchObject({ disposition: 'ANSWERED' })
  await rig.idle()
})

test('NOK is an end like any other: a dialog that the server has forgotten', async () => {
  const only = await startOne()
  await talk(only)
  const [live] = rig.calls.list()
  // As after 64 s in which the real one has heard nothing: it knows neither leg any more.
  only.forget()
  rig.calls.hangUp(live?.callUuid ?? '', 16)
  expect(await rig.record()).toMatchObject({ disposition: 'ANSWERED', hangupBy: 'api' })
  await rig.idle()
})

test('the answer that crosses our CANCEL is acknowledged, and the BYE is left to the server', async () => {
  const only = await startOne()
  const callId = only.invite()
  const { invite } = await called()
  only.inDialog('CANCEL', callId)
  await only.nextOutgoing('CANCEL')
  only.answer(invite, 200, sdp('too late'))
  await only.next('ACK')
  only.unsolicitedBye(invite.dialogId, 'ACK-BYE due to cancel race condition')
  expect(await rig.record()).toMatchObject({ disposition: 'CANCELED' })
  await rig.idle()
})

test('an INVITE that the server has silently forgotten after 64 s: the callee is hung up', async () => {
  const only = await startOne()
  only.invite()
  const { invite } = await called()
  only.answer(invite, 180)
  only.forget()
  only.answer(invite, 200, sdp('answer'))
  const bye = await only.nextOutgoing('BYE')
  expect(bye.dialogId).toBe(invite.dialogId)
  expect(await rig.record()).toMatchObject({ billsec: 0 })
  await rig.idle()
})

test('what goes wrong with a message ends neither the process nor the messages after it', async () => {
  const only = await startOne()
  only.deliver('s9|unheard-of|', '')
  await only.seen()
  rig.client.sendOptions('sip:a@b', () => {
    throw new Error('a bug')
  })
  only.answer(await only.nextOutgoing('OPTIONS'), 200)
  await only.seen()
  expect(rig.faults.splice(0)).toMatchObject([
    { error: expect.stringContaining('unheard-of') },
    { error: 'a bug' },
  ])
  await talk(only)
})

test('a server that sends what is no frame is left, and tried again', async () => {
  const only = await startOne()
  only.babble('HTTP/1.1 400 Bad Request #1\r\n')
  await connectedAgain(only)
  await talk(only)
})

// The real server's transaction in a dialog ends with the first response that passes.
test('a request in a dialog gets one response, never a provisional one, and no glare is left to the server', async () => {
  const only = await startOne()
  const { callId } = await talk(only)
  only.reinvite(callId, 're-1')
  const change = await only.nextOutgoing('INVITE')
  only.reinvite(callId, 're-2')
  const refusal = await only.next(500)
  expect([refusal.subject, /\r\nretry-after: 1\r\n/i.test(refusal.sip)]).toEqual(['re-2', true])
  only.answer(change, 200, sdp('changed'))
  const answer = await only.next(200)
  expect([answer.subject, answer.sip.includes(sdp('changed'))]).toEqual(['re-1', true])
  expect(only.commands.filter(({ subject }) => subject.startsWith('re-'))).toEqual([])
})

test('a server that answers pings is kept, one that falls silent is left with its calls', async () => {
  const only = await startOne()
  for (let ping = 1; ping <= 6; ping++) {
    await rig.advance(5_000)
    await only.until(() => only.pings === ping)
    await only.seen()
  }
  expect(only.welcomes).toBe(1)
  await talk(only)
  only.hang()
  await rig.advance(20_000)
  expect(await rig.record()).toMatchObject({ denialCode: 'connection_lost' })
})

test('a server that takes connections and does not answer gets no calls, until it does', async () => {
  const [first, second] = await startTwo()
  await first.crash()
  first.hang()
  await first.listen()
  await eventually(() => {
    rig.time.advance(1_000)
    expect(first.connections).toBe(1)
  })
  for (let i = 0; i < 3; i++) expect((await talk(second)).far).toBe(second)
  await rig.advance(10_000)
  first.resume()
  await eventually(() => expect(first.welcomes).toBe(2))
  expect((await talk(first)).far).toBe(first)
})

const authority = new Authority(temporaryFolder())

test('a server that shows no certificate of the authority does not learn the secret', async () => {
  await start(1)
  const other = new Authority(temporaryFolder(), 'other')
  const server = await DrachtioPeer.open(undefined, other.sign('server', ...loopbackNames))
  servers.push(server)
  const warnings: unknown[] = []
  const log: Log = (_level, _message, fields) => void warnings.push(fields?.['error'])
  const strangers = [{ ...server.address, tls: { caFile: authority.file } }]
  const client = new UserAgent({ port: drachtioPort(strangers, rig.time, log), log })
  void client.connect()
  await eventually(() => expect(warnings).toContainEqual(expect.stringContaining('certificate')))
  client.disconnect()
  expect(server.commands).toEqual([])
  const nowhere = [{ ...server.address, tls: { caFile: '/nowhere/ca.pem' } }]
  const lost = new UserAgent({ port: drachtioPort(nowhere, rig.time, log), log })
  expect(await lost.connect()).toMatchObject({
    kind: 'refused',
    reason: expect.stringContaining('/nowhere/ca.pem'),
  })
})

test('a phone is called by the server on which it has registered', async () => {
  const [first, second] = await startTwo()
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
  const only = await startOne()
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
  only.answer(next, 200, sdp('answer'))
  await only.next(200)
  const seen = [
    [1, 'failed'],
    [2, 'answered'],
  ]
  await eventually(() => expect(rig.outcomes).toEqual(seen))
})

test('a server that hangs is away: no node is blamed for its silence', async () => {
  const only = await startOne()
  const send = promisedProbe(rig.client, rig.time.schedule)
  only.invite()
  await called()
  only.hang()
  const probe = send('sip:127.0.0.1:5070', 400)
  await rig.advance(300)
  expect(await probe).toEqual({ kind: 'unsent' })
})

test('a probe that is under way when the server goes away says nothing of its node', async () => {
  const only = await startOne()
  const send = promisedProbe(rig.client, rig.time.schedule)
  const probe = send('sip:127.0.0.1:5070', 400)
  await only.nextOutgoing('OPTIONS')
  await only.crash()
  expect(await probe).toEqual({ kind: 'unsent' })
  expect(await send('sip:127.0.0.1:5070', 400)).toEqual({ kind: 'unsent' })
})

test('a caller that requires 100rel hears from us with a Contact, without which it could not answer', async () => {
  const only = await startOne()
  only.invite(['Require: 100rel'])
  const { invite } = await called()
  only.answer(invite, 180)
  only.answer(invite, 183, sdp('early'))
  const progress = [await only.next(180), await only.next(183)]
  expect(progress.map(({ sip }) => /^require: (.*)$/im.exec(sip)?.[1]?.trim())).toEqual([
    '100rel',
    '100rel',
  ])
  expect(only.responses.filter((text) => text.includes('\r\nContact: '))).toHaveLength(2)
  only.answer(invite, 200, sdp('early'))
  expect((await only.next(200)).sip).not.toMatch(/100rel/)
})

test('a re-INVITE whose answer the server loses because it rang is given up at last, and media may change again', async () => {
  const only = await startOne()
  rig.answers.authorize = () => Promise.resolve(granted(3_600))
  const { callId } = await talk(only)
  only.reinvite(callId, 're-1')
  const change = await only.nextOutgoing('INVITE')
  only.answer(change, 180)
  only.answer(change, 488)
  // The server must be able to answer our pings meanwhile.
  for (let waitedMs = 0; waitedMs < 205_000; waitedMs += 5_000) {
    await only.seen()
    await rig.advance(5_000)
  }
  expect((await only.next(500)).subject).toBe('re-1')
  only.reinvite(callId, 're-2')
  only.answer(await only.nextOutgoing('INVITE'), 200, sdp('changed'))
  expect((await only.next(200)).subject).toBe('re-2')
})
