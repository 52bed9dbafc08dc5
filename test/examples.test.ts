/** The examples of test/README.md. */
import { expect, onTestFinished, test } from 'vitest'
import { simulate } from './simulation/calls.ts'
import { customerWith, question } from './support/books.ts'
import { startCallRig, talk } from './support/call-rig.ts'
import { openResources } from './support/resources.ts'
import { requestOf, VirtualServer } from './support/sip-core.ts'

test('an INVITE is answered with 100, and after 240 s without an application with an error', () => {
  const server = new VirtualServer()
  server.receive(requestOf('INVITE'))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 100 Trying'])
  server.advance(240_000)
  expect(server.takeStartLines()).not.toEqual([])
})

test('the callee hangs up: the caller gets BYE, and the record says who ended the call', async () => {
  const rig = await startCallRig()
  onTestFinished(() => rig.stop())
  const { caller, node, nodeLeg } = await talk(rig)
  node.request('BYE', nodeLeg)
  caller.reply(await caller.next('BYE'), 200)
  expect(await rig.record()).toMatchObject({ disposition: 'ANSWERED', hangupBy: 'callee' })
})

test('two calls at once do not spend the same money', async () => {
  const { ocs } = await customerWith(1_000_000)
  expect((await ocs.authorize(question('first'))).kind).toBe('granted')
  expect((await ocs.authorize(question('second'))).kind).toBe('denied')
})

test('a set without nodes is refused', async () => {
  const { call } = await openResources()
  const body = { endpoint_name: 'pbx', algorithm: 8, nodes: [] }
  expect((await call('POST', '/api/v1/dispatcher', body)).status).toBe(400)
})

test.each([1, 2, 3])('calls end on both sides and leave nothing (seed %i)', (seed) => {
  expect(simulate(seed).complaints).toEqual([])
})
