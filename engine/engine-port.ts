/**
 * The engine as the API sees it: its times, which are those of the steady clock, become stamps
 * here.
 */
import type { EnginePort, ProbedStatus } from '../schema/contracts/engine.ts'
import type { RouteQualityStatus } from '../schema/contracts/route-quality.ts'
import type { Engine } from './engine.ts'
import { noRecordings } from './media/recording/recordings.ts'

/** Turns a time of the steady clock into milliseconds UTC. */
type StampOf = (time: number) => number

export function portOf(engine: Engine, stampOf: StampOf): EnginePort {
  return {
    calls: engine.calls,
    events: engine.events,
    tell: (happening) => engine.events.add(happening),
    trace: (callUuid) => engine.trace(callUuid),
    simulate: async (request) => {
      const simulated = await engine.simulate(request)
      return (
        simulated && {
          ...simulated,
          candidates: simulated.candidates.map((candidate) => {
            const { lowQuality } = candidate
            return lowQuality === null
              ? candidate
              : { ...candidate, lowQuality: stampedQuality(lowQuality, stampOf) }
          }),
        }
      )
    },
    originate: (request) => engine.originate(request),
    placeTestCall: (request) => engine.placeTestCall(request),
    spy: (request) => engine.spy(request),
    transfer: (request) => engine.transfer(request),
    recordings: engine.recordings ?? noRecordings,
    dispatcher: dispatcherPort(engine, stampOf),
    registrations: registrationsPort(engine, stampOf),
    guard: guardPort(engine, stampOf),
    reloadRouting: async (changed) => {
      await engine.routing.reload(changed)
      if (changed === undefined) await engine.callerPolicies.reload()
      else if (changed.of === 'carrier')
        await engine.callerPolicies.reload({ of: 'carrier', ids: changed.ids })
      if (changed === undefined || changed.of === 'tenant')
        await engine.registrar.reloadTenants(changed?.ids)
    },
    ownedNumbers: engine.ownedNumbers,
    reloadNumbers: (changed) => engine.ownedNumbers.reload(changed),
    reloadCallerPolicies: (ids) => engine.callerPolicies.reload({ of: 'customer', ids }),
    lookUp: (uris) => engine.routing.lookUp(uris),
    trunks: trunksPort(engine, stampOf),
    quality: qualityPort(engine, stampOf),
    routingWebhooks: engine.routingWebhooks,
    stir: engine.stir,
    telemetry: () => engine.telemetry(),
    startedCalls: () => engine.totals.calls + engine.calls.size,
    relays: () => engine.relays?.status() ?? [],
    postDialDelay: () => engine.totals.postDialDelay(),
    mos: () => engine.totals.mos(),
    listeners: () => engine.listeners,
    reachedAt: () => engine.reachedAt,
    isReady: () => engine.isReady,
    isDraining: () => engine.calls.isDraining,
  }
}

function stamped<S extends Pick<ProbedStatus, 'lastProbe'>>(status: S, stampOf: StampOf): S {
  const { lastProbe } = status
  return lastProbe ? { ...status, lastProbe: { ...lastProbe, at: stampOf(lastProbe.at) } } : status
}

const dispatcherPort = (
  { dispatcher, callerPolicies }: Engine,
  stampOf: StampOf,
): EnginePort['dispatcher'] => ({
  status: (setId) =>
    dispatcher
      .status(setId)
      .map((set) => ({ ...set, nodes: set.nodes.map((node) => stamped(node, stampOf)) })),
  find: (setId, destination) => {
    const node = dispatcher.find(setId, destination)
    return node && stamped(node, stampOf)
  },
  setState: (setId, destination, state, by) => dispatcher.setState(setId, destination, state, by),
  isUnresolvable: (nodeId) => dispatcher.isUnresolvable(nodeId),
  reload: async () => {
    await dispatcher.reload()
    await callerPolicies.reload({ of: 'dispatcher_set', ids: [] })
  },
})

const registrationsPort = (
  { registrar, callerPolicies }: Engine,
  stampOf: StampOf,
): EnginePort['registrations'] => ({
  statusOf: (domain, extension) => {
    const status = registrar.statusOf(domain, extension)
    const contacts = status.contacts.map((contact) => ({
      ...contact,
      expiresAt: stampOf(contact.expiresAt),
    }))
    return { ...status, contacts }
  },
  end: (domain, extension, contact) => registrar.endBindings(domain, extension, contact),
  changed: async (extensionIds) => {
    await registrar.changed(extensionIds)
    await callerPolicies.reload({ of: 'extension', ids: extensionIds })
  },
})

/** Bans by an operator hold at all instances, where they share a database. */
function guardPort({ guard, sharedBans }: Engine, stampOf: StampOf): EnginePort['guard'] {
  const bans = sharedBans ?? guard
  const during = <P extends { readonly since: number; readonly until: number }>(period: P): P => ({
    ...period,
    since: stampOf(period.since),
    until: stampOf(period.until),
  })
  return {
    bans: () => guard.bans().map(during),
    locks: () => guard.locks().map(during),
    ban: async (address, durationMs) => bans.ban(address, durationMs),
    unban: async (source) => bans.unban(source),
    endOperatorBan: async (source) => bans.endOperatorBan(source),
  }
}

const qualityPort = ({ routing }: Engine, stampOf: StampOf): EnginePort['quality'] => ({
  of: (routeId) => {
    const status = routing.qualityOf(routeId)
    return status && stampedQuality(status, stampOf)
  },
  all: () => routing.qualities().map((status) => stampedQuality(status, stampOf)),
})

const stampedQuality = (status: RouteQualityStatus, stampOf: StampOf): RouteQualityStatus => ({
  ...status,
  since: stampOf(status.since),
  until: status.until === null ? null : stampOf(status.until),
})

const trunksPort = ({ trunks }: Engine, stampOf: StampOf): EnginePort['trunks'] => {
  const stampOrNull = (time: number | null): number | null => time && stampOf(time)
  return {
    registrationOf: (carrierId) => {
      const registration = trunks.registrationOf(carrierId)
      if (registration === undefined) return undefined
      const { expiresAt, nextAttemptAt, lastAnswer } = registration
      return {
        ...registration,
        expiresAt: stampOrNull(expiresAt),
        nextAttemptAt: stampOrNull(nextAttemptAt),
        lastAnswer: lastAnswer && { ...lastAnswer, at: stampOf(lastAnswer.at) },
      }
    },
    gatewayStatus: (gatewayId) => {
      const status = trunks.gatewayStatus(gatewayId)
      return status && stamped(status, stampOf)
    },
  }
}
