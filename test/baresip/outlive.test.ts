/**
 * Two real phones talk, and the process between them is killed: they hear each other, hold,
 * transfer and hang up.
 */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Baresip } from '../support/baresip.ts'
import { transferSaved } from '../support/saved-transfer.ts'
import { domain, passwordOf, threePhones } from '../support/two-phones.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { eventually } from '../support/waiting.ts'

let tollgate: TollgateProcess
let phones: Baresip[] = []

beforeEach(async () => {
  tollgate = await TollgateProcess.start(threePhones)
})
afterEach(async () => {
  await Promise.all(phones.map((phone) => phone.stop()))
  phones = []
  await tollgate.stop()
})

async function phone(user: string): Promise<Baresip> {
  const { sipPort } = tollgate
  const started = await Baresip.start({ user, domain, sipPort, password: passwordOf(user) })
  phones.push(started)
  await started.registered()
  return started
}

/** Both hear each other while nothing is between them but the network, and afterwards. */
async function crash(one: Baresip, two: Baresip): Promise<void> {
  await tollgate.kill()
  await Promise.all([one.hearsMore(), two.hearsMore()])
  await tollgate.restart()
  await Promise.all([one.hearsMore(), two.hearsMore()])
}

test('after each crash the phones hear each other, and hold, transfer and hang up as before', async () => {
  const [one, two, three] = [await phone('101'), await phone('102'), await phone('103')]
  const token = await tollgate.createKey('--name', 'desk', '--scopes', 'calls:read')
  const callsAre = (...expected: readonly string[]) =>
    eventually(async () => {
      const answer = await fetch(`http://127.0.0.1:${tollgate.apiPort}/api/v1/pbx/calls/active`, {
        headers: { Authorization: `Bearer ${token}` },
      })
      const live = (await answer.json()) as readonly { readonly state: string }[]
      expect(live.map(({ state }) => state)).toEqual(expected)
    })
  await one.command('dial', `sip:102@${domain}`)
  await Promise.all([one.next('CALL_ESTABLISHED'), two.next('CALL_ESTABLISHED')])
  await crash(one, two)
  await callsAre('ACTIVE')

  await one.command('hold')
  await callsAre('HELD')
  await eventually(() => expect(tollgate.journal().join()).toContain('sendonly'))
  await tollgate.kill()
  await tollgate.restart()
  await callsAre('HELD')
  await one.command('resume')
  await callsAre('ACTIVE')
  // The next process asks the phones with what the journal has of their session.
  await eventually(() => {
    const states = tollgate.journal().filter((line) => line.includes('{"saved":'))
    expect(states.at(-1)).not.toContain('sendonly')
  })
  await crash(one, two)

  await one.command('transfer', `sip:103@${domain}`)
  await three.next('CALL_ESTABLISHED')
  await one.next('CALL_CLOSED')
  await callsAre('ACTIVE', 'ACTIVE')
  await transferSaved(tollgate)
  await crash(two, three)

  await two.command('hangup')
  await three.next('CALL_CLOSED')
  const records = await tollgate.waitForCalls(2)
  expect(records).toMatchObject([
    { disposition: 'ANSWERED', is_recovered: 0 },
    { disposition: 'ANSWERED', is_recovered: 0 },
  ])
  expect(records.map((record) => record.destination_number).toSorted()).toEqual(['102', '103'])
  await callsAre()
  expect(tollgate.faults).toEqual([])
})
