import { expect, test } from 'vitest'
import { paying, seedFor } from '../sipp/call-case.ts'
import { openPeer, startWithNode } from '../support/scripted-node.ts'
import { sdp, type Leg, type PeerMessage } from '../support/sip-peer.ts'

/** Stands in every header that belongs to the caller's side; `inside` in those of the node. */
const outside = 'outside.example'
const inside = 'inside.example'

/** What tells who and where a side is, and must stay there. */
const ownHeaders = (host: string): string[] => [
  `X-Internal: 10.9.9.9 of ${host}`,
  `User-Agent: Phone-of-${host}/1.0`,
  `Server: Exchange-of-${host}/1.0`,
  `Organization: ${host}`,
  `Warning: 399 ${host} "from ${host}"`,
  `Path: <sip:proxy.${host};lr>`,
  `Reply-To: <sip:boss@${host}>`,
]

const headOf = (message: PeerMessage): string => message.text.split('\r\n\r\n')[0] ?? ''

test('no header of one side shows what stands on the other; what belongs to the call passes', async () => {
  const { node, tollgate } = await startWithNode(seedFor, {
    SIP_PASS_HEADERS: 'X-Campaign, x-queue',
  })
  const caller = await openPeer(tollgate)
  const seenByNode: PeerMessage[] = []
  const seenByCaller: PeerMessage[] = []

  const leg: Leg = {
    ...caller.leg(`sip:18005551212@127.0.0.1:${tollgate.sipPort}`),
    from: `"Alice" <sip:${paying}@${outside}>;tag=a`,
  }
  caller.request('INVITE', leg, {
    body: sdp('offer'),
    headers: [
      ...ownHeaders(outside),
      `Via: SIP/2.0/UDP proxy.${outside};branch=z9hG4bK-beyond`,
      `Record-Route: <sip:proxy.${outside}@127.0.0.1:${caller.port};lr>`,
      `P-Asserted-Identity: "Alice" <sip:${paying}@${outside}>`,
      'Privacy: id',
      `Diversion: <sip:15559998888@${outside}>;reason=unconditional`,
      'X-Campaign: spring',
      'X-Call-UUID: forged',
    ],
  })
  const invite = await node.next('INVITE')
  seenByNode.push(invite)
  expect(invite.get('P-Asserted-Identity')).toContain(`sip:${paying}@`)
  expect(invite.get('Privacy')).toBe('id')
  expect(invite.get('Diversion')).toMatch(/sip:15559998888@.*reason=unconditional/)
  expect(invite.get('X-Campaign')).toBe('spring')
  expect(invite.get('From')).toMatch(/^"?Alice"? *</)
  expect(invite.body).toBe(sdp('offer'))
  expect(invite.get('X-Call-UUID')).toMatch(/^[0-9a-f-]{36}$/)
  expect(invite.get('Call-ID')).not.toBe(leg.callId)
  expect(invite.all('Via')).toHaveLength(1)
  expect(invite.get('Contact')).toContain(`127.0.0.1:${tollgate.sipPort}`)

  const insideHeaders = [
    ...ownHeaders(inside),
    'X-Queue: sales',
    `P-Asserted-Identity: <sip:bob@${inside}>`,
  ]
  node.reply(invite, 180, { tag: 'b', headers: insideHeaders })
  seenByCaller.push(await caller.next(180))
  node.reply(invite, 200, {
    tag: 'b',
    body: sdp('answer'),
    headers: [...insideHeaders, `Record-Route: <sip:proxy.${inside}@127.0.0.1:${node.port};lr>`],
  })
  const answer = await caller.next('200 INVITE')
  seenByCaller.push(answer)
  expect(answer.get('X-Queue')).toBe('sales')
  expect(answer.body).toBe(sdp('answer'))
  expect(answer.get('Call-ID')).toBe(leg.callId)
  expect(answer.get('Contact')).toContain(`127.0.0.1:${tollgate.sipPort}`)
  caller.learn(leg, answer)
  caller.request('ACK', leg)
  seenByNode.push(await node.next('ACK'))

  caller.request('INFO', leg, { body: 'Signal=5', headers: ownHeaders(outside) })
  const info = await node.next('INFO')
  seenByNode.push(info)
  node.reply(info, 200, { headers: ownHeaders(inside) })
  seenByCaller.push(await caller.next('200 INFO'))

  const back = node.calledLeg(invite, 'b')
  node.request('BYE', back, { headers: [...ownHeaders(inside), 'Reason: Q.850;cause=16'] })
  seenByCaller.push(await caller.next('BYE'))
  expect(seenByCaller.at(-1)?.get('Reason')).toBe('Q.850;cause=16')
  caller.reply(seenByCaller.at(-1) ?? invite, 200, { headers: ownHeaders(outside) })
  seenByNode.push(await node.next('200 BYE'))

  for (const message of seenByNode) {
    expect(headOf(message)).not.toContain(outside)
    expect(headOf(message)).not.toContain(`:${caller.port}`)
    expect(headOf(message)).not.toContain(leg.callId)
  }
  for (const message of seenByCaller) {
    // The Via headers of a response are the caller's own.
    const head = headOf(message)
    expect(head).not.toContain(inside)
    expect(head).not.toContain(`:${node.port}`)
    expect(head).not.toContain(invite.get('Call-ID'))
  }
  expect(await tollgate.waitForCalls(1)).toMatchObject([{ disposition: 'ANSWERED' }])
})

test('a refusal by the node passes its status, and nothing of what stands behind it', async () => {
  const { node, tollgate } = await startWithNode(seedFor)
  const caller = await openPeer(tollgate)
  caller.request('INVITE', caller.leg(`sip:18005551212@127.0.0.1:${tollgate.sipPort}`), {
    body: sdp('offer'),
    headers: [`P-Asserted-Identity: <sip:${paying}@${outside}>`],
  })
  node.reply(await node.next('INVITE'), 486, {
    tag: 'b',
    headers: [...ownHeaders(inside), 'Reason: Q.850;cause=17'],
  })
  const refusal = await caller.next(486)
  expect(refusal.get('Reason')).toBe('Q.850;cause=17')
  expect(refusal.text).not.toContain(inside)
  expect(refusal.text).not.toContain(`:${node.port}`)
})

test('a call that a node sends back to where it came from is a loop: 482', async () => {
  const { node, tollgate } = await startWithNode(seedFor)
  const caller = await openPeer(tollgate)
  caller.request('INVITE', caller.leg(`sip:18005551212@127.0.0.1:${tollgate.sipPort}`), {
    body: sdp('offer'),
    headers: [`P-Asserted-Identity: <sip:${paying}@${outside}>`],
  })
  const invite = await node.next('INVITE')
  const mark = `X-Call-UUID: ${invite.get('X-Call-UUID')}`
  const back = node.leg(`sip:18005551212@127.0.0.1:${tollgate.sipPort}`)
  node.request('INVITE', back, { body: invite.body, headers: [mark] })
  await node.next(482)
  node.reply(invite, 486, { tag: 'b' })
  await caller.next(486)
  expect(await tollgate.waitForCalls(2)).toMatchObject([{ sip_code: 482 }, { sip_code: 486 }])
})
