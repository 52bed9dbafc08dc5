/**
 * Click-to-call between real phones: audio both ways, hold, hang-up by the API, and what the API
 * tells of it.
 */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Baresip } from '../support/baresip.ts'
import { domain, passwordOf, twoPhones } from '../support/two-phones.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { eventually } from '../support/waiting.ts'

let tollgate: TollgateProcess
let phones: Baresip[] = []
let token: string

beforeEach(async () => {
  tollgate = await TollgateProcess.start(twoPhones)
  token = await tollgate.createKey('--name', 'crm', '--kind', 'pbx', '--scopes', '*')
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

interface Reply {
  readonly call_uuid?: string
  readonly code?: string
  readonly data?: {
    readonly status?: string
    readonly disposition?: string
    readonly entries?: readonly { readonly summary?: string }[]
    readonly events?: readonly { readonly type: string }[]
  }
}

async function api(path: string, body?: object): Promise<Reply> {
  const response = await fetch(`http://127.0.0.1:${tollgate.apiPort}/api/v1${path}`, {
    headers: {
      Authorization: `Bearer ${token}`,
      Accept: 'application/json',
      'Content-Type': 'application/json',
    },
    ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
  })
  return (await response.json()) as Reply
}

const statusOf = async (uuid: string) => (await api(`/pbx/calls/${uuid}`)).data?.status

async function stateIs(state: string): Promise<void> {
  await eventually(async () => {
    const calls = (await api('/pbx/calls/active')) as unknown as { state: string }[]
    expect(calls.map((call) => call.state)).toEqual([state])
  })
}

test('two phones are connected from the API, hear each other, hold, and are hung up by it', async () => {
  const [one, two] = [await phone('101'), await phone('102')]
  const started = await api('/pbx/calls/originate', {
    source_extension: '101',
    destination_number: '102',
    auto_answer: true,
  })
  const uuid = started.call_uuid ?? ''
  await Promise.all([one.next('CALL_ESTABLISHED'), two.next('CALL_ESTABLISHED')])
  await Promise.all([one.hearsMore(), two.hearsMore()])
  await eventually(async () => expect(await statusOf(uuid)).toBe('answered'))

  await two.command('hold')
  await stateIs('HELD')
  await two.command('resume')
  await stateIs('ACTIVE')
  await Promise.all([one.hearsMore(), two.hearsMore()])

  await api('/telephony/hangup', { call_uuid: uuid })
  await Promise.all([one.next('CALL_CLOSED'), two.next('CALL_CLOSED')])
  const [record] = await tollgate.waitForCalls(1)
  expect(record).toMatchObject({
    call_uuid: uuid,
    caller_id_number: '101',
    destination_number: '102',
    disposition: 'ANSWERED',
    hangup_by: 'api',
    direction: 'internal',
  })
  // A call is told as ended once its record is stored.
  const told = async () => (await api('/events')).data?.events?.map(({ type }) => type) ?? []
  await eventually(async () =>
    expect((await told()).findLast((type) => type.startsWith('call.'))).toBe('call.ended'),
  )
  expect(await statusOf(uuid)).toBe('completed')
  const { data } = await api(`/calls/${uuid}/trace`)
  const summaries = data?.entries?.flatMap(({ summary }) => summary ?? []) ?? []
  expect(summaries.filter((line) => line.startsWith('INVITE')).length).toBeGreaterThanOrEqual(2)
  expect((await told()).filter((type) => type === 'registration')).toHaveLength(2)
})
