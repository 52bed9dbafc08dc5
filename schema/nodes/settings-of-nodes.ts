/**
 * Settings that must be the same on all nodes. Each node tells its own in a row of the database, and compares those of
 * the nodes that live. A difference is told, not refused: such a setting is changed on one node after the other.
 */
import type { Cancel, Schedule } from '../clock.ts'
import type { Log } from '../contracts/log.ts'
import type { NodeIdentity, NodesPort } from '../contracts/nodes.ts'
import type { ServerNotices } from '../postgres/notices.ts'
import type { Statements } from '../sql/statements.ts'
import { HEARTBEAT_TTL_MS, SETTINGS_OF_NODE } from './node-registry.ts'

/** By the name of the setting, as text; secrets as a digest. */
export type CommonSettings = Readonly<Record<string, string>>

/** One setting with more than one value: the value of each node, by its name. */
export interface SettingDifference {
  readonly setting: string
  readonly values: Readonly<Record<string, string>>
}

export interface SettingsOfNodesDeps {
  readonly identity: NodeIdentity
  readonly own: CommonSettings
  /** A connection that waits for no other statements. */
  readonly connection: Pick<ServerNotices, 'query'>
  readonly schedule: Schedule
  readonly log: Log
}

const POLL_MS = 10_000
/** More nodes are not compared. */
const MAX_NODES = 200

/** A process whose name another one has taken over tells nothing. */
const tell = `INSERT INTO setting (name, value)
  SELECT '${SETTINGS_OF_NODE}' || name, CAST($3 AS text) FROM node WHERE name = $1 AND epoch = CAST($2 AS bigint)
  ON CONFLICT (name) DO UPDATE SET value = excluded.value`

/** One that starts has told those of its last run. */
const tellers = `SELECT node.name, setting.value FROM node
  JOIN setting ON setting.name = '${SETTINGS_OF_NODE}' || node.name
  WHERE node.state IN ('serving', 'draining')
    AND node.heartbeat_at > extract(epoch FROM clock_timestamp()) * 1000 - ${HEARTBEAT_TTL_MS}
  ORDER BY node.name LIMIT ${MAX_NODES}`

interface Row {
  readonly name: string
  readonly value: string
}

export class SettingsOfNodes {
  readonly #deps: SettingsOfNodesDeps
  #differing: NodesPort['differingSettings'] = new Map()
  #logged = '[]'
  #isServing = false
  #isTold = false
  #cancel: Cancel = () => undefined

  constructor(deps: SettingsOfNodesDeps) {
    this.#deps = deps
  }

  /** By the name of the node: the settings in which it differs from another one that lives. */
  get differing(): NodesPort['differingSettings'] {
    return this.#differing
  }

  /** Tells those of this node, and compares from now on. */
  serving(): void {
    this.#isServing = true
    this.#tick()
  }

  stop(): void {
    this.#isServing = false
    this.#cancel()
  }

  #tick(): void {
    if (!this.#isServing) return
    this.#cancel = this.#deps.schedule(() => this.#tick(), POLL_MS)
    void this.poll()
  }

  /** Compares now. Never rejects: without the server it is done the next time. */
  async poll(): Promise<void> {
    const { connection, identity, own } = this.#deps
    if (this.#isServing && !this.#isTold) {
      const values = [identity.name, identity.epoch, textOf(own)]
      this.#isTold = (await connection.query(tell, values)) !== undefined
    }
    const rows = await connection.query<Row>(tellers, [])
    if (rows === undefined) return
    const differences = differencesOf(settingsBy(rows).set(identity.name, own))
    this.#differing = byNode(differences)
    this.#note(differences)
  }

  #note(differences: readonly SettingDifference[]): void {
    const found = JSON.stringify(differences)
    if (found === this.#logged) return
    this.#logged = found
    const { log } = this.#deps
    if (differences.length === 0) log('info', 'settings are the same on all nodes again')
    else
      log(
        'warn',
        'settings that must be the same on all nodes differ: a call is treated differently by each',
        Object.fromEntries(differences.map(({ setting, values }) => [setting, values])),
      )
  }
}

/** What the nodes of a database that live have told of their settings. */
export async function settingsOfLiving(
  statements: Statements,
): Promise<Map<string, CommonSettings>> {
  return settingsBy(await statements.prepare<Row>(tellers).all([]))
}

/** A node knows fewer settings in an earlier version: only those that both know are compared. */
export function differencesOf(
  nodes: ReadonlyMap<string, CommonSettings>,
): readonly SettingDifference[] {
  const names = new Set([...nodes.values()].flatMap((settings) => Object.keys(settings)))
  return [...names].toSorted().flatMap((setting) => {
    const told = [...nodes].flatMap(([node, settings]) => {
      const value = settings[setting]
      return value === undefined ? [] : [[node, value] as const]
    })
    const isSame = new Set(told.map(([, value]) => value)).size < 2
    return isSame ? [] : [{ setting, values: Object.fromEntries(told) }]
  })
}

function byNode(differences: readonly SettingDifference[]): Map<string, readonly string[]> {
  const found = new Map<string, readonly string[]>()
  for (const { setting, values } of differences)
    for (const node of Object.keys(values)) found.set(node, [...(found.get(node) ?? []), setting])
  return found
}

const settingsBy = (rows: readonly Row[]): Map<string, CommonSettings> =>
  new Map(rows.map(({ name, value }) => [name, settingsIn(value)]))

/** One line for each. */
const textOf = (settings: CommonSettings): string =>
  Object.entries(settings)
    .map(([name, value]) => `${name}=${value.replaceAll('\n', ' ')}`)
    .join('\n')

const settingsIn = (text: string): CommonSettings =>
  Object.fromEntries(
    text.split('\n').map((line) => {
      const [name = '', ...value] = line.split('=')
      return [name, value.join('=')]
    }),
  )
