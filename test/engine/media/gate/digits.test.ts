import { expect, test } from 'vitest'
import { digitIn } from '../../../../engine/media/gate/digits.ts'
import { noRules } from '../../../support/media-party.ts'
import { talk } from '../../../support/call-rig.ts'
import { startMediaRig } from '../../../support/media-rig.ts'
import { hangUp } from '../../call/steps.ts'

const relayed = 'application/dtmf-relay'

test.each([
  [relayed, 'Signal=5\r\nDuration=250\r\n', { code: '5', durationMs: 250 }],
  [relayed, 'Signal= #\r\nDuration= 100', { code: '#', durationMs: 100 }],
  ['Application/DTMF-Relay; charset=utf-8', 'signal=10\r\n', { code: '*', durationMs: 160 }],
  [relayed, 'Signal=d\r\nDuration=99999', { code: 'D', durationMs: 5_000 }],
  [relayed, 'Signal=1\r\nDuration=0', { code: '1', durationMs: 40 }],
  ['application/dtmf', '7', { code: '7', durationMs: 160 }],
  ['application/dtmf', '7\r\n', { code: '7', durationMs: 160 }],
  [relayed, 'Signal=16', undefined],
  [relayed, 'Signal=', undefined],
  [relayed, undefined, undefined],
  ['application/dtmf', '77', undefined],
  ['application/media_control+xml', '5', undefined],
])('%s %j', (type, body, digit) => {
  expect(digitIn({ 'content-type': type }, body)).toEqual(digit)
  expect(digitIn({}, body)).toBeUndefined()
})

const setRules = { ...noRules, dtmf: 'rfc4733' } as const
const info = { contentType: relayed, body: 'Signal=5\r\nDuration=200\r\n' }

test('a digit in INFO is played into the RTP of a party that takes RFC 4733, and answered', async () => {
  const rig = await startMediaRig({ setRules })
  const { caller, node, leg, nodeLeg } = await talk(rig)
  caller.request('INFO', leg, info)
  await caller.next('200 INFO')
  expect(rig.relay.requests.at(-1)).toMatchObject({
    command: 'play DTMF',
    'from-tag': 'uuid-1.0',
    code: '5',
    duration: 200,
  })
  // The other direction, and INFO about something else, pass.
  node.request('INFO', nodeLeg, info)
  caller.reply(await caller.next('INFO'), 200)
  await node.next('200 INFO')
  caller.request('INFO', leg, { contentType: 'text/plain', body: 'hello' })
  node.reply(await node.next('INFO'), 200)
  await caller.next('200 INFO')
  await hangUp(caller, leg, node)
  await rig.idle()
})

test('a digit for a relay that is out passes at once, after those that wait for it', async () => {
  const rig = await startMediaRig({ setRules })
  const { caller, node, leg } = await talk(rig)
  rig.relay.mode = 'not'
  caller.request('INFO', leg, info)
  await rig.settle()
  rig.relay.isAlive = false
  caller.request('INFO', leg, { ...info, body: 'Signal=6\r\nDuration=200\r\n' })
  await rig.advance(400)
  for (const digit of ['5', '6']) {
    const passed = await node.next('INFO')
    expect(passed.body).toContain(`Signal=${digit}`)
    node.reply(passed, 200)
    await caller.next('200 INFO')
  }
  caller.request('INFO', leg, info)
  node.reply(await node.next('INFO'), 200)
  await caller.next('200 INFO')
  const plays = rig.relay.commands.filter((command) => command === 'play DTMF')
  expect(plays, 'the relay was asked once').toHaveLength(1)
  await hangUp(caller, leg, node)
  await rig.advance(6_000)
  await rig.settle()
})
