/**
 * Settings that must be the same on all instances. Each instance writes its settings to a row of
 * the database and compares those of the live instances. A difference is logged, not refused:
 * operators change such a setting on one instance after the other.
 */
import type { Cancel, Schedule } from '../clock.ts'
import type { Log } from '../contracts/log.ts'
import type { InstanceIdentity, InstancesPort } from '../contracts/instances.ts'
import type { ServerNotices } from '../changes/server-notices.ts'
import type { Statements } from '../sql/statements.ts'
import { HEARTBEAT_TTL_MS, SETTINGS_OF_INSTANCE } from './instance-registry.ts'

/** Values by the name of the setting, as text; secrets as a digest. */
export type CommonSettings = Readonly<Record<string, string>>

/** One setting with more than one value: the value of each instance, by its name. */
export interface SettingDifference {
  readonly setting: string
  readonly values: Readonly<Record<string, string>>
}

export interface SettingsOfInstancesDeps {
  readonly identity: InstanceIdentity
  readonly own: CommonSettings
  /** A connection that waits for no other statements. */
  readonly connection: Pick<ServerNotices, 'query'>
  readonly schedule: Schedule
  readonly log: Log
}

const POLL_MS = 10_000
/** More instances are not compared. */
const MAX_INSTANCES = 200

/** A process whose name another one has taken over writes nothing. */
const writeOwn = `INSERT INTO setting (name, value)
  SELECT '${SETTINGS_OF_INSTANCE}' || name, CAST($3 AS text) FROM node
  WHERE name = $1 AND epoch = CAST($2 AS bigint)
  ON CONFLICT (name) DO UPDATE SET value = excluded.value`

/** An instance that starts is left out: its row is of its last run. */
const readLive = `SELECT node.name, setting.value FROM node
  JOIN setting ON setting.name = '${SETTINGS_OF_INSTANCE}' || node.name
  WHERE node.state IN ('serving', 'draining')
    AND node.heartbeat_at > extract(epoch FROM clock_timestamp()) * 1000 - ${HEARTBEAT_TTL_MS}
  ORDER BY node.name LIMIT ${MAX_INSTANCES}`

interface Row {
  readonly name: string
  readonly value: string
}

export class SettingsOfInstances {
  readonly #deps: SettingsOfInstancesDeps
  #differing: InstancesPort['differingSettings'] = new Map()
  #logged = '[]'
  #isServing = false
  #isWritten = false
  #cancel: Cancel = () => undefined

  constructor(deps: SettingsOfInstancesDeps) {
    this.#deps = deps
  }

  /**
   * The settings in which each instance differs from another live one, by the name of the instance.
   */
  get differing(): InstancesPort['differingSettings'] {
    return this.#differing
  }

  /** Writes the settings of this instance, and compares from now on. */
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

  /** Compares now. Never rejects: without an answer of the server, the next poll compares. */
  async poll(): Promise<void> {
    const { connection, identity, own } = this.#deps
    if (this.#isServing && !this.#isWritten) {
      const values = [identity.name, identity.epoch, textOf(own)]
      this.#isWritten = (await connection.query(writeOwn, values)) !== undefined
    }
    const rows = await connection.query<Row>(readLive, [])
    if (rows === undefined) return
    const differences = differencesOf(settingsBy(rows).set(identity.name, own))
    this.#differing = byInstance(differences)
    this.#note(differences)
  }

  #note(differences: readonly SettingDifference[]): void {
    const text = JSON.stringify(differences)
    if (text === this.#logged) return
    this.#logged = text
    const { log } = this.#deps
    if (differences.length === 0) log('info', 'settings are the same on all instances again')
    else
      log(
        'warn',
        'settings that must be the same on all instances differ: each treats calls differently',
        Object.fromEntries(differences.map(({ setting, values }) => [setting, values])),
      )
  }
}

/** Returns the settings of the live instances of a database. */
export async function settingsOfLiving(
  statements: Statements,
): Promise<Map<string, CommonSettings>> {
  return settingsBy(await statements.prepare<Row>(readLive).all([]))
}

/** Compares only settings that both instances know: another version may have more. */
export function differencesOf(
  instances: ReadonlyMap<string, CommonSettings>,
): readonly SettingDifference[] {
  const names = new Set([...instances.values()].flatMap((settings) => Object.keys(settings)))
  return [...names].toSorted().flatMap((setting) => {
    const values = [...instances].flatMap(([instance, settings]) => {
      const value = settings[setting]
      return value === undefined ? [] : [[instance, value] as const]
    })
    const isSame = new Set(values.map(([, value]) => value)).size < 2
    return isSame ? [] : [{ setting, values: Object.fromEntries(values) }]
  })
}

function byInstance(differences: readonly SettingDifference[]): Map<string, readonly string[]> {
  const byName = new Map<string, readonly string[]>()
  for (const { setting, values } of differences)
    for (const instance of Object.keys(values))
      byName.set(instance, [...(byName.get(instance) ?? []), setting])
  return byName
}

const settingsBy = (rows: readonly Row[]): Map<string, CommonSettings> =>
  new Map(rows.map(({ name, value }) => [name, settingsIn(value)]))

/** One line per setting. */
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
