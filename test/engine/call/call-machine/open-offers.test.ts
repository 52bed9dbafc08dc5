/** One offer at a time in each dialog, from either side; and what is owed when a leg is over. */
import { expect, test } from 'vitest'
import type { CallCommand } from '../../../../engine/call/call-machine/protocol.ts'
import { CallMachine, response } from '../../../support/call-machine.ts'
import { candidate } from '../../../support/call-rig.ts'

const sdp = (name: string, version = 1) =>
  `v=0\r\no=${name} 1 ${version} IN IP4 10.0.0.1\r\ns=-\r\nm=audio 4000 RTP/AVP 8\r\n`

function talk() {
  const machine = new CallMachine()
  const { caller, callee } = machine.answered(null, candidate(1, 5_060))
  let count = 0
  const ask = (legId: string, method: string, body?: string) => {
    const requestId = `${legId}!${count++}`
    return machine.event({ type: 'request', legId, requestId, method, headers: {}, body })
  }
  const answer = (legId: string, number: number, status: number, body?: string) =>
    machine.event({
      type: 'response',
      legId,
      transactionId: `${legId}#${number}`,
      response: response(status, body),
      owesAck: body?.startsWith('late') === true,
    })
  return { machine, caller, callee, ask, answer }
}

const statuses = (commands: readonly CallCommand[]) =>
  commands.flatMap((command) => (command.type === 'answerRequest' ? [command.status] : []))
const requests = (commands: readonly CallCommand[]) =>
  commands.flatMap((command) => (command.type === 'request' ? [command.method] : []))

test.each(['INVITE', 'UPDATE'])(
  'an offer by UPDATE waits while one by %s is open (RFC 3311 §5.2)',
  (method) => {
    const { caller, callee, ask, answer } = talk()
    expect(requests(ask(caller, method, sdp('a')))).toEqual([method])
    expect(statuses(ask(callee, 'UPDATE', sdp('b')))).toEqual([491])
    const own = ask(caller, 'UPDATE', sdp('a', 2))
    expect(own).toMatchObject([{ status: 500, headers: { 'Retry-After': '1' } }])
    expect(requests(ask(callee, 'UPDATE'))).toEqual(['UPDATE'])
    answer(callee, 0, 200, sdp('b'))
    expect(requests(ask(callee, 'UPDATE', sdp('b', 2)))).toEqual(['UPDATE'])
  },
)

test('a re-INVITE waits while an offer by UPDATE is open', () => {
  const { caller, callee, ask } = talk()
  ask(caller, 'UPDATE', sdp('a'))
  expect(statuses(ask(callee, 'INVITE', sdp('b')))).toEqual([491])
})

test('the sender of a re-INVITE has gone before its answer: 487, and the offer in the answer is declined', () => {
  const { machine, caller, callee, ask, answer } = talk()
  ask(caller, 'INVITE')
  machine.event({ type: 'bye', legId: caller, headers: {}, isOurs: false })
  const commands = answer(callee, 0, 200, `late ${sdp('b')}`)
  expect(statuses(commands)).toEqual([487])
  const acknowledge = commands.find(({ type }) => type === 'acknowledgeReinvite')
  expect(acknowledge).toMatchObject({ legId: callee, body: expect.stringContaining('a=inactive') })
})

test('the ACK that a peer is owed goes out when its dialog ends', () => {
  const { machine, caller, callee, ask, answer } = talk()
  ask(caller, 'INVITE')
  answer(callee, 0, 200, `late ${sdp('b')}`)
  const commands = machine.event({ type: 'bye', legId: callee, headers: {}, isOurs: false })
  expect(commands).toContainEqual(
    expect.objectContaining({ type: 'acknowledgeReinvite', legId: callee }),
  )
})

test.each(['before', 'after'])(
  'a re-INVITE that rings %s its dialog ends is given up: no final response may come',
  (when) => {
    const { machine, caller, callee, ask, answer } = talk()
    ask(caller, 'INVITE', sdp('a'))
    if (when === 'before') answer(callee, 0, 180)
    machine.event({ type: 'bye', legId: caller, headers: {}, isOurs: false })
    if (when === 'after') answer(callee, 0, 180)
    expect(statuses(machine.commands)).toHaveLength(1)
    expect([machine.world.legs.size, machine.timers]).toEqual([0, 0])
  },
)
