/** The files of `examples/hooks`, as a user runs them: one program each, and calls by SIPp. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { callWith, type SippResult } from '../support/sipp.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import type { StoredCall } from '../support/tollgate-process.ts'
import { eventually } from '../support/waiting.ts'
import { attemptsOf, cents, paying, startCase, type Case } from './call-case.ts'

const clean = { exitCode: 0, errors: '' }
const folder = temporaryFolder()
const called = '18005551212'

type CaseOptions = Parameters<typeof startCase>[0]
type Settings = Readonly<Record<string, string>>

/** A program that asks the example. No example takes longer than its limit on an idle machine. */
async function startExample(
  name: string,
  { environment, ...options }: CaseOptions,
  settings: Settings = {},
): Promise<Case> {
  const hooks = { HOOKS: `examples/hooks/${name}.ts`, HOOKS_TIMEOUT_MS: '5000' }
  const own = await startCase({
    ...options,
    environment: { ...environment, ...hooks, ...settings },
  })
  onTestFinished(() => expect(own.tollgate.faults).toEqual([]))
  return own
}

const place = (
  { tollgate }: Case,
  scenario: string,
  options: Parameters<typeof callWith>[2] = {},
): Promise<SippResult> =>
  callWith(`inbound/${scenario}.xml`, tollgate.sipPort, { keys: { caller: paying }, ...options })

const tagsOf = (call: StoredCall | undefined): unknown =>
  JSON.parse((call as { readonly tags?: string | null } | undefined)?.tags ?? 'null')

/** Answers each number with the same JSON. `asked` has the numbers in order. */
async function startLookUps(answer: object) {
  const asked: (string | null)[] = []
  const server = createServer((request, response) => {
    asked.push(new URL(request.url ?? '', 'http://localhost').searchParams.get('number'))
    response.setHeader('Content-Type', 'application/json').end(JSON.stringify(answer))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void server.close())
  const address = server.address()
  return { asked, url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/` }
}

test('each example has at most 40 lines', () => {
  const names = readdirSync('examples/hooks')
  expect(names).toHaveLength(8)
  const lines = names.map(
    (name) => readFileSync(`examples/hooks/${name}`, 'utf8').split('\n').length,
  )
  expect(Math.max(...lines) - 1).toBeLessThanOrEqual(40)
})

test('number portability: the price is that of the network, which is asked for once', async () => {
  const { asked, url } = await startLookUps({ prefix: '7701' })
  const rates = ['1', '7701'].map((prefix, index) => ({
    rate_plan: 'retail',
    prefix,
    rate_per_minute: ['0.60', '6.00'][index],
  }))
  const own = await startExample(
    'number-portability',
    { nodes: ['answers'], seed: () => ({ rates }) },
    { LNP_URL: url, LNP_WAIT_MS: '4000' },
  )
  expect(await place(own, 'answered')).toEqual(clean)
  expect(await place(own, 'answered')).toEqual(clean)
  const [call] = await own.tollgate.waitForCalls(2)
  expect(call).toMatchObject({ destination_number: `7701${called}` })
  expect(call?.cost_micros).toBe(cents(10) * (call?.billsec ?? 0))
  expect(tagsOf(call)).toEqual({ dialled: called })
  expect(asked).toEqual([called])
})

test('caller name: a node sees the name of a caller that shows none', async () => {
  const { asked, url } = await startLookUps({ name: 'Globex' })
  const own = await startExample(
    'caller-name',
    { nodes: ['answers-globex'] },
    { CNAM_URL: url, CNAM_WAIT_MS: '4000' },
  )
  expect(await place(own, 'answered')).toEqual(clean)
  expect(asked).toEqual([paying])
})

test('block list: a changed file counts for the next call', async () => {
  const file = join(folder, 'blocked.txt')
  const own = await startExample('block-list', { nodes: ['answers'] }, { BLOCK_LIST: file })
  const said = (text: string) =>
    eventually(() => expect(own.tollgate.log.join('\n')).toContain(text))
  await said('cannot be read, so nobody is blocked')
  expect(await place(own, 'answered')).toEqual(clean)
  writeFileSync(file, '+1 555 000 1*  # all of them\n\n# nobody else\n')
  await said(`1 lines of ${file} block callers`)
  expect(await place(own, 'declined')).toEqual(clean)
  const [, call] = await own.tollgate.waitForCalls(2)
  expect(call).toMatchObject({ sip_code: 603, denial_code: 'hook_refused', cost_micros: 0 })
  expect(tagsOf(call)).toEqual({ blocked: paying })
})

const nodesOf = (ports: readonly number[]) =>
  ports.map((port) => ({ host: '127.0.0.1', internal_port: port }))

test('office hours: out of hours a number is answered by the night set, another one as always', async () => {
  const own = await startExample(
    'office-hours',
    {
      nodes: ['answers', 'answers'],
      seed: ([day = 0, night = 0]) => ({
        dispatcher: [
          { endpoint_name: 'day', set_id: 1, algorithm: 8, nodes: nodesOf([day]) },
          { endpoint_name: 'night', set_id: 2, algorithm: 8, nodes: nodesOf([night]) },
        ],
      }),
    },
    // It never opens.
    {
      OFFICE_NUMBERS: `+${called},+18005550000`,
      OFFICE_CLOSES: '00:00',
      OFFICE_NIGHT_SET: 'night',
    },
  )
  expect(await place(own, 'answered')).toEqual(clean)
  expect(await place(own, 'answered', { service: '18005551213' })).toEqual(clean)
  const [closed, other] = await own.tollgate.waitForCalls(2)
  expect([closed?.node, other?.node]).toEqual([own.uris[1], own.uris[0]])
  expect([tagsOf(closed), tagsOf(other)]).toEqual([{ office: 'closed' }, null])
})

test('sticky agent: who calls again reaches the node that has answered before', async () => {
  const own = await startExample('sticky-agent', {
    nodes: ['answers', 'answers', 'answers'],
    // Without the example each node has its turn.
    seed: (ports) => ({
      dispatcher: [{ endpoint_name: 'pbx', set_id: 1, algorithm: 4, nodes: nodesOf(ports) }],
    }),
  })
  for (const _ of [1, 2, 3, 4]) expect(await place(own, 'answered')).toEqual(clean)
  const calls = await own.tollgate.waitForCalls(4)
  expect(new Set(calls.map(({ node }) => node)).size).toBe(1)
})

test('fraud score: the third of neighbouring numbers is refused, and costs nothing', async () => {
  const own = await startExample('fraud-score', { nodes: ['answers'] }, { FRAUD_LIMIT: '20' })
  expect(await place(own, 'answered', { service: '18005551210' })).toEqual(clean)
  expect(await place(own, 'answered', { service: '18005551211' })).toEqual(clean)
  expect(await place(own, 'unknown-source', { service: '18005551212' })).toEqual(clean)
  const calls = await own.tollgate.waitForCalls(3)
  expect(calls.map(tagsOf)).toEqual(['0', '11', '22'].map((score) => ({ fraud_score: score })))
  expect(calls[2]).toMatchObject({ denial_code: 'hook_refused', sip_code: 403, cost_micros: 0 })
})

test('country failover: a 404 moves on in the country of the table, in its order, and not elsewhere', async () => {
  const port = await freePort()
  const silent = await freePort()
  const names = ['north', 'south']
  const own = await startExample('country-failover', {
    nodes: ['answers', 'refuses-404'],
    seed: (ports) => ({
      rates: ['44', '1'].map((prefix) => ({
        ...{ rate_plan: 'retail', rate_per_minute: '0.60', prefix },
      })),
      // The caller: its calls go out.
      dispatcher: [
        {
          ...{ endpoint_name: 'pbx', set_id: 1, algorithm: 8 },
          nodes: [{ host: '127.0.0.1', internal_port: silent, external_port: port }],
        },
      ],
      carriers: names.map((name, index) => ({
        ...{ name, direction: 'out' },
        gateways: [{ host: '127.0.0.1', port: ports[index] }],
      })),
      outbound_routes: names.flatMap((carrier, index) => [
        { name: `UK by ${carrier}`, prefix: '44', carrier, priority: 10 + index },
        // Here the order of the routes is that of the table for 44.
        { name: `US by ${carrier}`, prefix: '1', carrier, priority: 20 - index },
      ]),
    }),
  })
  expect(await place(own, 'answered', { service: '442079460000', port })).toEqual(clean)
  expect(await place(own, 'not-found', { service: called, port })).toEqual(clean)
  const [first, second] = await own.tollgate.waitForCalls(2)
  expect(attemptsOf(first ?? { attempts: '[]' })).toEqual([404, 200])
  expect(first).toMatchObject({ carrier: 'north', direction: 'outbound' })
  expect(attemptsOf(second ?? { attempts: '[]' })).toEqual([404])
})

test('announcement: its number hears the file, is hung up, and pays; other numbers go on', async () => {
  const file = join(folder, 'words.ulaw')
  const words = Buffer.from(Array.from({ length: 1_600 }, (_, at) => at % 251))
  writeFileSync(file, words)
  const announced = '18005550100'
  const own = await startExample(
    'announcement',
    { nodes: ['answers'] },
    { ANNOUNCEMENT_FILE: file, ANNOUNCEMENT_NUMBER: announced },
  )
  const ear = createSocket('udp4')
  const heard: Buffer[] = []
  ear.on('message', (packet) => heard.push(packet.subarray(12)))
  await once(ear.bind(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void ear.close())
  const keys = { caller: paying, ear: String(ear.address().port) }
  expect(await place(own, 'listens', { service: announced, keys })).toEqual(clean)
  expect(Buffer.concat(heard)).toEqual(words)
  expect(await place(own, 'answered')).toEqual(clean)
  const [announcement, other] = await own.tollgate.waitForCalls(2)
  expect(announcement).toMatchObject({ disposition: 'ANSWERED', hangup_by: 'callee' })
  expect(announcement?.cost_micros).toBe(cents(announcement?.billsec ?? 0))
  expect([announcement?.node, other?.node]).toEqual([null, own.uris[0]])
})
