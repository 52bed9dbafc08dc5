/** Plants eleven incidents in a running demo, by SIP and by its API. */
import { z } from 'zod'
import { registerThrough } from '../../../call/user-agent/carrier-register.ts'
import type { UserAgent } from '../../../call/user-agent/user-agent.ts'
import type { CommandContext } from '../../command.ts'
import { type Endpoint, silentAudio } from '../../../endpoint.ts'
import {
  BY_NORTHERN,
  BY_SOUTHERN,
  callers,
  GUESSED_EXTENSION,
  OFFICE_DOMAIN,
  PREMIUM,
  SUPPORT,
  UNKNOWN_CALLER,
  UNPRICED,
} from './incident-data.ts'

export interface Stage {
  readonly api: string
  readonly sipPort: number
  /** A phone on the platform's own machine: From names the payer. */
  readonly phone: UserAgent
  /** A PBX node whose calls go out by carriers. */
  readonly node: UserAgent
  /** Sources that guess passwords. */
  readonly strangers: readonly UserAgent[]
  readonly dying: Endpoint
  /** The gateway of the carrier northern. */
  readonly northern: Endpoint
  /** How many calls the gateway of the carrier southern has refused. */
  readonly refusedBySouthern: () => number
  /** Keys: of the operator of the night, and of a program that reports. */
  readonly nightShift: string
  readonly reporting: string
}

/** Address from which the leaked key is tried. */
const STRANGER = '203.0.113.66'

const BURST_CALLS = 15
const TALK_MS = 500
/** Longer than all calls of one incident need to be set up. */
const LONG_TALK_MS = 3_000

/** Resolves when all of it has happened: about 15 s. */
export async function plantIncidents(stage: Stage, context: CommandContext): Promise<void> {
  await Promise.all([usualDay(stage, context), usualUseOfKey(stage)])
  await takeNodeOut(stage)
  await Promise.all([stage.dying.stop(), stage.northern.stop()])
  const call = caller(stage, context)
  const { phone, node } = stage
  await Promise.all([
    call(phone, callers.harbour, '15550201', { count: 6 }),
    call(phone, callers.acme, `${PREMIUM}5550123`, { count: BURST_CALLS, everyMs: 150 }),
    call(phone, callers.globex, '15550202', { count: 3 }),
    call(phone, UNKNOWN_CALLER, '15550203', { count: 12, everyMs: 150 }),
    call(phone, callers.initech, `${UNPRICED}1234567`, { count: 3 }),
    call(phone, callers.umbrella, '15550204', { count: 4, everyMs: 100, talkMs: LONG_TALK_MS }),
    call(phone, callers.support, `${SUPPORT}1`, { count: 4, everyMs: 100, talkMs: LONG_TALK_MS }),
    call(node, callers.wayne, `${BY_NORTHERN}7946000`, { count: 4 }),
    callSouthern(stage, context),
    leakKey(stage),
    guessPasswords(stage.strangers, stage.sipPort, context),
  ])
}

interface Repeat {
  readonly count: number
  readonly everyMs?: number
  readonly talkMs?: number
}

const caller =
  ({ sipPort }: Stage, context: CommandContext) =>
  (
    client: UserAgent,
    from: string,
    to: string,
    { count, everyMs = 300, talkMs = TALK_MS }: Repeat,
  ) =>
    Promise.all(
      Array.from({ length: count }, async (_, index) => {
        await pause(context, index * everyMs)
        await dial({ client, from, to, talkMs }, sipPort, context)
      }),
    )

/** More than the calls of which a carrier is judged. */
const REFUSED_BY_SOUTHERN = 25
const MAX_ROUNDS = 20

/** While its gateway is out of service, which it is until its next probe, calls do not reach it. */
async function callSouthern(stage: Stage, context: CommandContext): Promise<void> {
  const call = caller(stage, context)
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    if (stage.refusedBySouthern() >= REFUSED_BY_SOUTHERN) return
    await call(stage.node, callers.stark, `${BY_SOUTHERN}5512345`, { count: 10, everyMs: 100 })
  }
}

const pause = ({ schedule }: CommandContext, ms: number): Promise<void> =>
  new Promise((resolve) => void schedule(resolve, ms))

/** Calls that nothing is wrong with; a probe of each gateway is answered meanwhile. */
const usualDay = (stage: Stage, context: CommandContext): Promise<unknown> => {
  const call = caller(stage, context)
  return Promise.all([
    call(stage.phone, callers.harbour, '15550205', { count: 2 }),
    call(stage.phone, callers.acme, '15550205', { count: 2 }),
    call(stage.node, callers.wayne, `${BY_NORTHERN}7946000`, { count: 2 }),
    pause(context, PROBED_MS),
  ])
}

/** Time after the start by which every gateway has been probed. */
const PROBED_MS = 3_000

async function usualUseOfKey({ api, reporting: key }: Stage): Promise<void> {
  for (const path of ['/reports/cdrs', '/telephony/calls', '/reports/cdrs'])
    await ask(api, { method: 'GET', path, key })
}

async function leakKey({ api, reporting: key }: Stage): Promise<void> {
  const attempts = [
    { method: 'GET', path: '/application-keys' },
    { method: 'GET', path: '/customers' },
    { method: 'POST', path: '/application-keys', body: { name: 'mine', scopes: ['*'] } },
    ...[1, 2, 3, 4, 5, 6, 7, 8].map((id) => ({ method: 'DELETE', path: `/customers/${id}` })),
    ...[1, 2].map((id) => ({ method: 'DELETE', path: `/routing/carriers/${id}` })),
    {
      method: 'POST',
      path: '/users',
      body: { username: 'mine', password: 'not a secret', role: 'admin' },
    },
  ] as const
  for (const attempt of attempts) await ask(api, { ...attempt, key, address: STRANGER })
}

const sets = z.array(z.looseObject({ id: z.int(), set_id: z.int() }))
const set = z.looseObject({
  nodes: z.array(z.looseObject({ id: z.int(), description: z.string().nullable() })),
})

async function takeNodeOut({ api, nightShift: key }: Stage): Promise<void> {
  const all = sets.parse(await ask(api, { method: 'GET', path: '/dispatcher', key }))
  const id = all.find(({ set_id }) => set_id === 2)?.id ?? 0
  const { nodes } = set.parse(await ask(api, { method: 'GET', path: `/dispatcher/${id}`, key }))
  const node = nodes.find(({ description }) => description === 'support 1')?.id ?? 0
  const path = `/dispatcher/${id}/nodes/${node}/state`
  await ask(api, { method: 'PUT', path, key, body: { state: 'inactive' } })
}

/** Guesses from each address: fewer than the guard bans for. */
const GUESSES = 12

/** Resolves when all are answered. */
async function guessPasswords(
  strangers: readonly UserAgent[],
  sipPort: number,
  { schedule, newUuid }: Pick<CommandContext, 'schedule' | 'newUuid'>,
): Promise<void> {
  await Promise.all(
    strangers.map(async (stranger) => {
      const send = registerThrough(stranger, schedule)
      const callId = newUuid()
      for (let guess = 1; guess <= GUESSES; guess += 1)
        await send({
          registrar: `sip:127.0.0.1:${sipPort};transport=udp`,
          username: GUESSED_EXTENSION,
          password: `${GUESSED_EXTENSION}${guess}`,
          realm: null,
          domain: OFFICE_DOMAIN,
          expiresSeconds: 60,
          callId,
          cseq: guess,
        })
    }),
  )
}

/** Calls of the incidents, placed and ended one by one. */
export interface IncidentCall {
  readonly client: UserAgent
  readonly from: string
  readonly to: string
  /** How long it lasts when it is answered. */
  readonly talkMs: number
}

/** A refusal takes at most as long as a call is tried. */
const MAX_SETUP_MS = 40_000

/** Resolves when the call is over, however it ends. */
function dial(
  { client, from, to, talkMs }: IncidentCall,
  sipPort: number,
  { schedule }: Pick<CommandContext, 'schedule'>,
): Promise<void> {
  return new Promise((resolve) => {
    const giveUp = schedule(resolve, MAX_SETUP_MS)
    const over = (): void => {
      giveUp()
      resolve()
    }
    client.invite(
      {
        uri: `sip:${to}@127.0.0.1:${sipPort}`,
        nextHop: undefined,
        body: silentAudio,
        headers: { From: `<sip:${from}@localhost>` },
        credentials: undefined,
      },
      {
        onSent: () => undefined,
        onProvisional: () => undefined,
        onEnd: (end) => {
          if (end.kind !== 'answered') return over()
          schedule(() => {
            if (end.dialog.isConnected) end.dialog.bye({})
            over()
          }, talkMs)
        },
      },
    )
  })
}

/** Requests of the incidents to the API of the demo. */
export interface DemoRequest {
  readonly method: string
  readonly path: string
  readonly key: string
  readonly body?: object
  /** Address from which it seems to come: the demo trusts the proxy that says so. */
  readonly address?: string
}

const answer = z.looseObject({ data: z.unknown() })

/** `data` of the answer; undefined: it was refused, or has none. */
async function ask(
  api: string,
  { method, path, key, body, address }: DemoRequest,
): Promise<unknown> {
  const response = await fetch(`http://${api}/api/v1${path}`, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      ...(address !== undefined && { 'x-forwarded-for': address }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(10_000),
  })
  const text = await response.text()
  if (!response.ok) return undefined
  const read = answer.safeParse(JSON.parse(text))
  return read.success ? read.data.data : undefined
}
