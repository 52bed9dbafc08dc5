/**
 * Looks once a minute at what rules with a threshold measure, and at what this instance sees of
 * nodes and carriers. What all instances see is measured by one of them; disks and certificates by
 * each, of its own.
 */
import { sql } from 'kysely'
import { DAY_MS, type Schedule } from '../../schema/clock.ts'
import type { CertificateStatus } from '../../schema/contracts/certificates.ts'
import type { Log } from '../../schema/contracts/log.ts'
import { kindFacts } from '../../schema/contracts/alert-kinds.ts'
import { all, lockedTransaction, onOneInstance, readApart } from '../../schema/sql/query.ts'
import { isUnstored } from '../../schema/storage/storage.ts'
import type { Store } from '../../schema/storage/store.ts'
import type { AlertBook } from './alert-book.ts'
import { verdictOn } from './alert-judge.ts'
import type { RuleInForce } from './alert-rule-set.ts'
import { type AlertSample, type MeasuringRule, samplers, type SharedKind } from './alert-samples.ts'
import { isWitnessed, type Witnesses } from './witnesses.ts'

export interface DiskSpace {
  readonly folder: string
  readonly freeBytes: number
  readonly totalBytes: number
}

export interface AlertWatchDeps {
  readonly store: Store
  readonly book: AlertBook
  readonly witnesses: Pick<Witnesses, 'note'>
  /** The name of this instance. */
  readonly instance: string
  readonly now: () => number
  readonly schedule: Schedule
  readonly log: Log
  /** Disks of this instance. */
  readonly disks: () => Promise<readonly DiskSpace[]>
  /** Certificates of this instance. */
  readonly certificates: () => readonly CertificateStatus[]
}

/** Another instance is at work with alerts for some milliseconds. */
const BUSY_MS = 200
const MAX_TRIES = 20
/** Each minute one of several instances measures. */
const TURN_MS = 50_000
const TURN = 'alerts measured at'

export class AlertWatch {
  readonly #deps: AlertWatchDeps

  constructor(deps: AlertWatchDeps) {
    this.#deps = deps
  }

  async tick(rules: readonly RuleInForce[]): Promise<void> {
    const witnessed = rules.filter(({ kind }) => isWitnessed(kind))
    if (witnessed.length > 0) await this.#alone(() => this.#deps.witnesses.note(witnessed))
    const measuring = rules.filter(isMeasuring)
    if (measuring.length === 0) return
    const own = measuring.filter(({ kind }) => kindFacts[kind].measured?.isOfInstance === true)
    for (const rule of own)
      await this.#settleBy(rule, 'alert: an instance cannot be measured', () =>
        this.#ownSamples(rule),
      )
    const shared = measuring.filter((rule) => !own.includes(rule))
    if (shared.length === 0 || !(await this.#isItsTurn())) return
    for (const rule of shared)
      await this.#settleBy(rule, 'alert: a rule cannot be measured', () =>
        readApart(this.#deps.store, 'alerts', () =>
          samplers[rule.kind as SharedKind](this.#deps.store, rule, this.#deps.now()),
        ),
      )
  }

  /** A rule that cannot be measured keeps no other from that. */
  async #settleBy(
    rule: MeasuringRule,
    problem: string,
    measure: () => Promise<readonly AlertSample[]>,
  ): Promise<void> {
    try {
      await this.#settle(rule, await measure())
    } catch (error) {
      if (isUnstored(error)) throw error
      this.#deps.log('error', problem, { rule: rule.name, error })
    }
  }

  async #isItsTurn(): Promise<boolean> {
    const { store, now } = this.#deps
    if (!store.statements.isShared) return true
    const at = now()
    const claim = sql<{ name: string }>`
      INSERT INTO setting (name, value) VALUES (${TURN}, ${String(at)})
      ON CONFLICT (name) DO UPDATE SET value = excluded.value
        WHERE CAST(setting.value AS bigint) NOT BETWEEN ${at - TURN_MS} AND ${at}
      RETURNING name`
    const rows = await all<{ name: string }>(store, { compile: () => claim.compile(store.db) })
    return rows.length > 0
  }

  /** A bad value opens an alert; a good one, or none, closes it. */
  async #settle(rule: MeasuringRule, samples: readonly AlertSample[]): Promise<void> {
    const { book, now } = this.#deps
    const { measured } = kindFacts[rule.kind]
    if (measured === undefined) return
    const work = async (): Promise<void> => {
      const open = (await book.alertsOf(rule.id)).map(({ subject }) => subject)
      const present = new Set(samples.map(({ subject }) => subject))
      const kept = new Set<string>()
      for (const { value, isVague = false, ...facts } of samples) {
        const verdict = isVague ? 'between' : verdictOn(measured, rule.threshold, value)
        if (verdict !== 'good') kept.add(facts.subject)
        if (verdict === 'bad') await book.open(rule, facts, now())
      }
      for (const subject of open)
        if (!kept.has(subject) && this.#isSeenHere(subject, measured.isOfInstance)) {
          const why = present.has(subject) ? undefined : measured.absent
          await book.close(rule, subject, now(), { by: 'recovery', why })
        }
    }
    await this.#alone(work)
  }

  /** Runs `work` once no other instance is at work with alerts. */
  async #alone(work: () => Promise<void>): Promise<void> {
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      const done = await onOneInstance(this.#deps.store, 'alerts', work, lockedTransaction)
      if (done.kind === 'done') return
      await new Promise<void>((resolve) => void this.#deps.schedule(resolve, BUSY_MS))
    }
  }

  /** An instance knows nothing of disks and certificates of other ones. */
  #isSeenHere(subject: string, isOfInstance: boolean | undefined): boolean {
    return isOfInstance !== true || subject.startsWith(`${this.#deps.instance} `)
  }

  async #ownSamples(rule: MeasuringRule): Promise<readonly AlertSample[]> {
    const { instance, now } = this.#deps
    if (rule.kind === 'disk_low')
      return (await this.#deps.disks()).map(({ folder, freeBytes, totalBytes }) => {
        const percent = Math.round((freeBytes / Math.max(1, totalBytes)) * 1_000) / 10
        return {
          subject: `${instance} ${folder}`,
          path: '/console/settings',
          value: percent,
          text:
            `The disk of ${folder} at instance ${instance} has ${percent} % left (limit: ` +
            `${rule.threshold} %)`,
          figures: { instance, folder, free_bytes: freeBytes, free_percent: percent },
        }
      })
    return this.#deps.certificates().map(({ use, file, notAfter }) => {
      const days = Math.floor((notAfter - now()) / DAY_MS)
      const when = days < 0 ? 'has expired' : `expires in ${days} days`
      return {
        subject: `${instance} ${use} ${file}`,
        path: '/console/settings',
        value: days,
        text: `The certificate ${file} (${use}) at instance ${instance} ${when}`,
        figures: { instance, use, file, days },
      }
    })
  }
}

const isMeasuring = (rule: RuleInForce): rule is MeasuringRule => rule.threshold !== null
