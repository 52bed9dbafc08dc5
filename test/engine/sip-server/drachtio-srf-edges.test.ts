/** Inputs at the edge of what the drachtio protocol and SIP allow, seen by an unmodified drachtio-srf. */
import { afterEach, describe, expect, test } from 'vitest'
import { startRig, variants, type Rig } from '../../support/sip-rig.ts'
import { type SrfRequest } from '../../support/srf.ts'

let rig: Rig | undefined
afterEach(async () => {
  await rig?.stop()
  rig = undefined
})

/** An application that answers every MESSAGE with its own body. */
async function echoing(variant: (typeof variants)[number]) {
  const seen: SrfRequest[] = []
  rig = await startRig(variant, (srf) =>
    srf.message((req, res) => {
      seen.push(req)
      res.send(200, { headers: { 'Content-Type': 'text/plain' }, body: req.body })
    }),
  )
  const peer = await rig.peer()
  return { rig, peer, seen, leg: peer.leg(rig.uri('app')) }
}

describe.each(variants)('application by $app, SIP by $sip', (variant) => {
  test('a body crosses unharmed in both directions, whatever it is made of', async () => {
    const { peer, leg } = await echoing(variant)
    for (const body of ['a|b|c', 'grüße 👋', '5#x|ping', '\r\n\r\n', 'x'.repeat(20_000)]) {
      peer.request('MESSAGE', leg, { body })
      expect((await peer.next('200 MESSAGE')).body).toBe(body)
    }
  })

  test('a pipe in Call-ID or tag cannot forge fields of the drachtio protocol', async () => {
    const { peer, seen, leg } = await echoing(variant)
    peer.request('MESSAGE', { ...leg, callId: 'a|b|c' })
    peer.request('MESSAGE', { ...leg, from: '<sip:x@127.0.0.1>;tag=a|b' })
    peer.request('MESSAGE', leg, { body: 'good' })
    await peer.next((message) => message.body === 'good')
    for (const { stackTxnId, stackDialogId } of seen)
      expect(`${stackTxnId}${stackDialogId}`).not.toMatch(/[|]/)
  })

  test('folded lines and compact names reach the application unfolded and in full', async () => {
    const { peer, seen, leg } = await echoing(variant)
    peer.request('MESSAGE', leg, {
      headers: ['s: one', ' two', 'k: 100rel', 'x-Odd-NAME: kept'],
      body: 'hi',
    })
    await peer.next('200 MESSAGE')
    expect(seen[0]?.get('Subject')).toBe('one two')
    expect(seen[0]?.get('Supported')).toBe('100rel')
    expect(seen[0]?.get('X-Odd-Name')).toBe('kept')
  })
})
