/** A phone that has registered over TCP at another node: on real sockets. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { recordAtA, startTwoNodes, talkAcross, type TwoNodes } from '../../../support/two-nodes.ts'
import { hangUp } from '../../call/steps.ts'

let nodes: TwoNodes

beforeEach(async () => {
  nodes = await startTwoNodes({ withTcp: true })
})
afterEach(() => nodes.stop())

test('is called, and called off, over the connection of its registration', async () => {
  const { caller, leg, phone, invite } = await talkAcross(nodes, nodes.phoneByTcp())
  expect(invite.all('Record-Route')[0]).toMatch(/;transport=tcp;lr>$/)
  await hangUp(caller, leg, phone)
  expect(await recordAtA(nodes)).toMatchObject({ disposition: 'ANSWERED', hangupBy: 'caller' })
})

test('is absent at once when its connection is closed: 480', async () => {
  const phone = await nodes.phoneByTcp()
  phone.hangUp()
  await nodes.b.until(() => nodes.b.server.stats()['connections'] === 0)
  const { caller } = await nodes.dial()
  await caller.next('480 INVITE')
})
