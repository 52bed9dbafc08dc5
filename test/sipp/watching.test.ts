/** What the API tells of calls, phones and nodes, read over HTTP as a CRM and finance would. */
import { expect, onTestFinished, test } from 'vitest'
import { EventReader } from '../support/event-reader.ts'
import { callWith } from '../support/sipp.ts'
import type { TollgateProcess } from '../support/tollgate-process.ts'
import { watchedNodes } from '../support/waiting.ts'
import { paying, poor, startCase } from './call-case.ts'
import { domain, startPhones } from './phone-case.ts'

const clean = { exitCode: 0, errors: '' }
const from = (caller: string) => ({ keys: { caller } })

function makeKey(tollgate: TollgateProcess, ...words: string[]): Promise<string> {
  const name = `key ${words.join('-')}.`
  return tollgate.createKey('--scopes', '*', '--name', name, ...words)
}

function api(tollgate: TollgateProcess, token: string, path: string, options: RequestInit = {}) {
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
  return fetch(`http://127.0.0.1:${tollgate.apiPort}/api/v1${path}`, {
    ...options,
    headers: { ...headers, ...(options.headers as Record<string, string> | undefined) },
  })
}

async function watch(tollgate: TollgateProcess, token: string, lastId?: string) {
  const reader = await EventReader.open(tollgate, token, lastId)
  onTestFinished(() => reader.close())
  return reader
}

test('a phone that registers, and one whose password changes or that is deleted, is reported', async () => {
  const { tollgate, phone } = await startPhones()
  const token = await makeKey(tollgate)
  const reader = await watch(tollgate, token)
  const [one, two] = [await phone('101'), await phone('102')]
  const of = (extension: string, status: string, contacts: number) => ({
    data: { extension, domain, status, contacts },
  })
  expect(await one.register()).toEqual(clean)
  expect(await reader.next('registration')).toMatchObject(of('101', 'registered', 1))
  expect(await two.register()).toEqual(clean)
  expect(await reader.next('registration')).toMatchObject(of('102', 'registered', 1))
  const listed = await (await api(tollgate, token, '/pbx/extensions')).json()
  const { data } = listed as { data: { id: number; extension: string }[] }
  const idOf = (extension: string) => data.find((each) => each.extension === extension)?.id ?? 0
  const body = JSON.stringify({ password: 'another long password' })
  await api(tollgate, token, `/pbx/extensions/${idOf('101')}`, { method: 'PATCH', body })
  expect(await reader.next('registration')).toMatchObject(of('101', 'unregistered', 0))
  await api(tollgate, token, `/pbx/extensions/${idOf('102')}`, { method: 'DELETE' })
  expect(await reader.next('registration')).toMatchObject(of('102', 'unregistered', 0))
})

test('a node that falls silent and comes back is told of, and a reader goes on where it left off', async () => {
  const { tollgate, nodes, uris } = await startCase({
    nodes: ['answers', 'answers'],
    environment: watchedNodes,
  })
  const token = await makeKey(tollgate)
  const reader = await watch(tollgate, token)
  nodes[1]?.freeze()
  const down = await reader.next('node.down')
  expect(down.data).toMatchObject({ destination: uris[1], state: 'probing', set_id: 1 })
  reader.close()
  // Without a reader, a call succeeds and the node recovers.
  expect(await callWith('inbound/answered.xml', tollgate.sipPort, from(paying))).toEqual(clean)
  // The end of a call is told when its record is stored.
  await tollgate.waitForCalls(1)
  nodes[1]?.thaw()
  const again = await watch(tollgate, token, down.id)
  const started = await again.next('call.started')
  for (const type of ['call.answered', 'call.ended'])
    expect((await again.next(type)).data['call_uuid']).toBe(started.data['call_uuid'])
  expect((await again.next('node.up')).data).toMatchObject({ destination: uris[1] })
  const stranger = await watch(tollgate, token, 'of-another-process')
  await stranger.next('stream.gap')
  expect((await stranger.next('node.down')).id).toBe(down.id)
})

test('reports are made beside the calls: every INVITE has a record with its attempts', async () => {
  const { tollgate, uris } = await startCase({ nodes: ['refuses-503', 'answers'] })
  const token = await makeKey(tollgate)
  expect(await callWith('inbound/answered.xml', tollgate.sipPort, from(paying))).toEqual(clean)
  expect(await callWith('inbound/no-funds.xml', tollgate.sipPort, from(poor))).toEqual(clean)
  await tollgate.waitForCalls(2)
  const period = `start_date=${ago(60_000)}&end_date=${ago(-60_000)}`
  const get = (accept: string) =>
    api(tollgate, token, `/reports/cdrs?${period}`, { headers: { Accept: accept } })
  const report = (await (await get('application/json')).json()) as { records: unknown[] }
  expect(report).toMatchObject({
    total_calls: 2,
    records: [
      {
        disposition: 'ANSWERED',
        attempts: [
          { destination: uris[0], status: 503 },
          { destination: uris[1], status: 200 },
        ],
      },
      { disposition: 'FAILED', sip_code: 402, denial_code: 'insufficient_funds', attempts: [] },
    ],
  })
  const lines = (await (await get('application/x-ndjson')).text()).trim().split('\n')
  expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual(report.records)
  expect((await (await get('text/csv')).text()).trim().split('\r\n')).toHaveLength(3)
  expect(tollgate.faults).toEqual([])
  expect(await tollgate.terminate()).toBe(0)
})

const ago = (ms: number): string => new Date(Date.now() - ms).toISOString()
