/** Call control on drachtio-servers elsewhere, which a scripted peer stands for (engine/sip-server/wire/README.md). */
import type { Log } from '../../schema/contracts/log.ts'
import { openServer } from '../support/call-world.ts'
import { afterEach, expect, test } from 'vitest'
import { UserAgent } from '../../engine/call/user-agent/user-agent.ts'
import { candidate, type CallRig, startCallRig } from '../support/call-rig.ts'
import type { Command } from '../support/drachtio-messages.ts'
import { DrachtioPeer, type Outgoing } from '../support/drachtio-peer.ts'
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

/** Whichever server our INVITE went by. */
async function called(): Promise<{ readonly server: DrachtioPeer; readonly invite: Outgoing }> {
  await eventually(() =>
    expect(servers.some(({ outgoing }) => outgoing.some(({ method }) => method === 'INVITE'))).toBe(
      true,
    ),
  )
  const server = servers.find(({ outgoing }) => outgoing.some(({ method }) => method === 'INVITE'))
  if (server === undefined) throw new Error('no INVITE')
  return { server, invite: await server.nextOutgoing('INVITE') }
}

interface Talk {
  readonly callId: string
  /** The servers of the caller and of the called side. */
  readonly near: DrachtioPeer
  readonly far: DrachtioPeer
  readonly invite: Outgoing
  readonly answer: Command
}

async function talk(near: DrachtioPeer): Promise<Talk> {
  const callId = near.invite()
  const { server: far, invite } = await called()
  far.answer(invite, 180)
  far.answer(invite, 200, { body: sdp('answer') })
  const answer = await near.next(200)
  near.inDialog('ACK', callId)
  await rig.until(() => rig.calls.list().some(({ state }) => state === 'ACTIVE'))
  return { callId, near, far, invite, answer }
}

test('a call goes through servers elsewhere, and ends with a record', async () => {
  const [near] = await start(2)
  if (near === undefined) return
  const { callId, far, answer } = await talk(near)
  expect(answer.sip).toContain(sdp('answer'))
  await far.next('ACK')
  near.inDialog('BYE', callId, 'bye-1')
  await far.next('BYE')
  expect(await rig.record()).toMatchObject({ disposition: 'ANSWERED', hangupBy: 'caller' })
  await rig.idle()
})

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

test('when a server goes away its calls end with a record, and those of the others go on', async () => {
  const [first, second] = await start(2)
  if (first === undefined || second === undefined) return
  await talk(first)
  await talk(first)
  const survivor = await talk(second)
  await talk(second)
  await first.crash()
  for (let i = 0; i < 2; i++)
    expect(await rig.record()).toMatchObject({
      disposition: 'ANSWERED',
      denialCode: 'connection_lost',
    })
  expect(rig.calls.size).toBe(2)
  second.inDialog('BYE', survivor.callId, 'bye-2')
  expect(await rig.record()).toMatchObject({ disposition: 'ANSWERED', hangupBy: 'caller' })
})

const connectedAgain = (server: DrachtioPeer) =>
  eventually(() => {
    rig.time.advance(1_000)
    expect(server.welcomes).toBe(2)
  })

test('new calls are made on the servers that are left, and on the lost one when it is back', async () => {
  const [first, second] = await start(2)
  if (first === undefined || second === undefined) return
  await first.crash()
  for (let i = 0; i < 3; i++) expect((await talk(second)).far).toBe(second)
  await first.listen()
  await connectedAgain(first)
  expect((await talk(second)).far).toBe(second)
  expect((await talk(first)).far).toBe(first)
})

test('without any server nothing is sent, and nothing throws', async () => {
  const [only] = await start(1)
  if (only === undefined) return
  const lost = new Promise<void>((resolve) => rig.client.onLost(() => resolve()))
  await only.crash()
  await lost
  const ends: unknown[] = []
  const handlers = {
    onSent: () => undefined,
    onProvisional: () => undefined,
    onEnd: (end: unknown) => void ends.push(end),
  }
  const invite = {
    uri: 'sip:a@b',
    headers: {},
    nextHop: undefined,
    body: '',
    credentials: undefined,
  }
  rig.client.invite(invite, handlers)
  rig.client.sendOptions('sip:a@b', (answer) => void ends.push(answer))
  expect(ends).toMatchObject([
    { kind: 'not-sent', isConnectionLost: true },
    { reason: expect.stringContaining('no connection'), isUnsent: true },
  ])
  await only.listen()
  await connectedAgain(only)
})

test('a real server keeps 100 back: a node that rings late is asked whether it is there', async () => {
  const [only] = await start(1)
  if (only === undefined) return
  only.invite()
  const { invite } = await called()
  await only.seen()
  await rig.advance(1_600)
  const options = await only.nextOutgoing('OPTIONS')
  only.answer(options, 200)
  await only.seen()
  await rig.advance(3_000)
  only.answer(invite, 200, { body: sdp('answer') })
  expect((await only.next(200)).sip).toContain(sdp('answer'))
})

test('a BYE that the server has sent by itself ends the call', async () => {
  const [only] = await start(1)
  if (only === undefined) return
  const { callId } = await talk(only)
  only.unsolicitedBye(`${callId};from-tag=caller`, 'ACK timeout')
  await only.next('BYE')
  expect(await rig.record()).toMatchObject({ disposition: 'ANSWERED' })
  await rig.idle()
})

test('NOK is an end like any other: a dialog that the server has forgotten', async () => {
  const [only] = await start(1)
  if (only === undefined) return
  const { callId } = await talk(only)
  const [live] = rig.calls.list()
  // As after 64 s in which the real one has heard nothing: it knows neither leg any more.
  only.forget()
  rig.calls.hangUp(live?.callUuid ?? '', 16)
  expect(await rig.record()).toMatchObject({ disposition: 'ANSWERED', hangupBy: 'api' })
  expect(callId).not.toBe('')
  await rig.idle()
})

test('the answer that crosses our CANCEL is acknowledged, and the BYE is left to the server', async () => {
  const [only] = await start(1)
  if (only === undefined) return
  const callId = only.invite()
  const { invite } = await called()
  only.inDialog('CANCEL', callId)
  await only.nextOutgoing('CANCEL')
  only.answer(invite, 200, { body: sdp('too late') })
  await only.next('ACK')
  only.unsolicitedBye(invite.dialogId, 'ACK-BYE due to cancel race condition')
  expect(await rig.record()).toMatchObject({ disposition: 'CANCELED' })
  await rig.idle()
})

test('WebSocket phones come as tcp: what counts is their Via', async () => {
  const [only] = await start(1)
  if (only === undefined) return
  only.invite({ protocol: 'tcp', via: 'WSS' })
  const { invite } = await called()
  only.answer(invite, 486)
  expect(await rig.record()).toMatchObject({ sipCode: 486 })
})

test('a call with a long history stays within what the real server can read', async () => {
  const [only] = await start(1)
  if (only === undefined) return
  await talk(only)
  expect(only.tooLong).toBe(0)
  expect(Math.max(...only.commands.map(({ sip }) => sip.length))).toBeLessThan(12_000)
})

test('an INVITE that the server has silently forgotten after 64 s: the callee is hung up', async () => {
  const [only] = await start(1)
  if (only === undefined) return
  only.invite()
  const { invite } = await called()
  only.answer(invite, 180)
  only.forget()
  only.answer(invite, 200, { body: sdp('answer') })
  const bye = await only.nextOutgoing('BYE')
  expect(bye.dialogId).toBe(invite.dialogId)
  expect(await rig.record()).toMatchObject({ billsec: 0 })
  await rig.idle()
})

test('what goes wrong with a message ends neither the process nor the messages after it', async () => {
  const [only] = await start(1)
  if (only === undefined) return
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
  const [only] = await start(1)
  if (only === undefined) return
  only.babble('HTTP/1.1 400 Bad Request #1\r\n')
  await connectedAgain(only)
  await talk(only)
})

test('a reliable provisional response of a node gets its PRACK', async () => {
  const [only] = await start(1)
  if (only === undefined) return
  only.invite()
  const { invite } = await called()
  only.answer(invite, 183, { headers: ['Require: 100rel', 'RSeq: 7'], body: sdp('early') })
  const { dialogId, sip } = await only.next('PRACK')
  expect(dialogId).toBe(invite.dialogId)
  expect(sip).toMatch(/\r\nrack: 7 \d+ INVITE\r\n/i)
  only.answer(invite, 200, { body: sdp('early') })
  await only.next(200)
})

test('a caller hears a code that drachtio-srf does not know', async () => {
  const [only] = await start(1)
  if (only === undefined) return
  only.invite()
  const { invite } = await called()
  only.answer(invite, 608)
  expect((await only.next(608)).sip).toMatch(/^SIP\/2\.0 608 \S/)
  expect(await rig.record()).toMatchObject({ sipCode: 608 })
})

test('while we are away callers get a plain 503, and none does once we are back', async () => {
  const [only] = await start(1)
  if (only === undefined) return
  await only.crash()
  only.invite()
  expect(only.refused).toEqual([expect.stringMatching(/^SIP\/2\.0 503 /)])
  expect(only.refused[0]).not.toContain('Retry-After')
  await only.listen()
  await connectedAgain(only)
  await talk(only)
  expect(only.refused).toHaveLength(1)
})

test('a 503 that the server makes by itself moves the call on to the next node', async () => {
  const [only] = await start(1)
  if (only === undefined) return
  only.invite()
  only.answer(await only.nextOutgoing('INVITE'), 503)
  only.answer(await only.nextOutgoing('INVITE'), 200, { body: sdp('answer') })
  expect((await only.next(200)).sip).toContain(sdp('answer'))
})

// The real server's transaction in a dialog ends with the first response that passes.
test('a request in a dialog gets one response, never a provisional one, and no glare is left to the server', async () => {
  const [only] = await start(1)
  if (only === undefined) return
  const { callId } = await talk(only)
  only.reinvite(callId, 're-1')
  const change = await only.nextOutgoing('INVITE')
  only.reinvite(callId, 're-2')
  const refusal = await only.next(500)
  expect([refusal.subject, /\r\nretry-after: 1\r\n/i.test(refusal.sip)]).toEqual(['re-2', true])
  only.answer(change, 200, { body: sdp('changed') })
  const answer = await only.next(200)
  expect([answer.subject, answer.sip.includes(sdp('changed'))]).toEqual(['re-1', true])
  expect(only.commands.filter(({ subject }) => subject.startsWith('re-'))).toEqual([])
  expect(only.surplus).toEqual([])
})

test('a server that answers pings is kept, one that falls silent is left with its calls', async () => {
  const [only] = await start(1)
  if (only === undefined) return
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
  const [first, second] = await start(2)
  if (first === undefined || second === undefined) return
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

test('a server is reached by TLS, also when it comes back', async () => {
  const hostPorts = 'udp/198.51.100.10:5060'
  const server = await DrachtioPeer.open(hostPorts, authority.sign('server', ...loopbackNames))
  servers = [server]
  const tls = { caFile: authority.file }
  rig = await startCallRig({ servers: [{ ...server.address, tls }] })
  await eventually(() => expect(server.welcomes).toBe(1))
  await server.crash()
  await server.listen()
  await connectedAgain(server)
  rig.answers.candidates.push(candidate(1, 5_070))
  await talk(server)
})

test('a server that shows no certificate of the authority does not learn the secret', async () => {
  await start(1)
  const other = new Authority(temporaryFolder(), 'other')
  const server = await DrachtioPeer.open(undefined, other.sign('server', ...loopbackNames))
  servers.push(server)
  const warnings: unknown[] = []
  const log: Log = (_level, _message, fields) => void warnings.push(fields?.['error'])
  const client = new UserAgent(log)
  const { schedule } = rig.time
  const strangers = [{ ...server.address, tls: { caFile: authority.file } }]
  const open = openServer(rig.time, log)
  void client.connect({ kind: 'tcp', servers: strangers, schedule, open })
  await eventually(() => expect(warnings).toContainEqual(expect.stringContaining('certificate')))
  client.disconnect()
  expect(server.commands).toEqual([])
  const nowhere = [{ ...server.address, tls: { caFile: '/nowhere/ca.pem' } }]
  expect(await client.connect({ kind: 'tcp', servers: nowhere, schedule, open })).toMatchObject({
    kind: 'refused',
    reason: expect.stringContaining('/nowhere/ca.pem'),
  })
})

test('one that is left before it has answered is not connected to afterwards', async () => {
  await start(1)
  const server = await DrachtioPeer.open()
  servers.push(server)
  const client = new UserAgent(() => undefined)
  const { schedule } = rig.time
  const open = openServer(rig.time, () => undefined)
  void client.connect({ kind: 'tcp', servers: [server.address], schedule, open })
  client.disconnect()
  await rig.advance(5_000)
  expect([server.connections, server.commands]).toEqual([0, []])
})
