/**
 * The engine as the API sees it: its times, which are those of the steady clock, become stamps
 * here.
 */
import type { EnginePort, ProbedStatus } from '../schema/contracts/engine.ts'
import type { Engine } from './engine.ts'
import { noRecordings } from './media/recording/recordings.ts'

export function portOf(engine: Engine, stampOf: (time: number) => number): EnginePort {
  const stampOrNull = (time: number | null): number | null => time && stampOf(time)
  const stamped = <S extends Pick<ProbedStatus, 'lastProbe'>>(status: S): S => {
    const { lastProbe } = status
    return lastProbe
      ? { ...status, lastProbe: { ...lastProbe, at: stampOf(lastProbe.at) } }
      : status
  }
  const { dispatcher, trunks, registrar, guard, sharedBans } = engine
  return {
    calls: engine.calls,
    events: engine.events,
    tell: (happening) => engine.events.add(happening),
    trace: (callUuid) => engine.trace(callUuid),
    simulate: (request) => engine.simulate(request),
    originate: (request) => engine.originate(request),
    placeTestCall: (request) => engine.placeTestCall(request),
    spy: (request) => engine.spy(request),
    transfer: (request) => engine.transfer(request),
    recordings: engine.recordings ?? noRecordings,
    dispatcher: {
      status: (setId) =>
        dispatcher.status(setId).map((set) => ({ ...set, nodes: set.nodes.map(stamped) })),
      find: (setId, destination) => {
        const node = dispatcher.find(setId, destination)
        return node && stamped(node)
      },
      setState: (setId, destination, state, by) =>
        dispatcher.setState(setId, destination, state, by),
      isUnresolvable: (nodeId) => dispatcher.isUnresolvable(nodeId),
      reload: () => dispatcher.reload(),
    },
    registrations: {
      statusOf: (domain, extension) => {
        const status = registrar.statusOf(domain, extension)
        const contacts = status.contacts.map((contact) => ({
          ...contact,
          expiresAt: stampOf(contact.expiresAt),
        }))
        return { ...status, contacts }
      },
      end: (domain, extension, contact) => registrar.endBindings(domain, extension, contact),
      changed: (extensionIds) => registrar.changed(extensionIds),
    },
    guard: {
      bans: () =>
        guard.bans().map((ban) => ({
          ...ban,
          since: stampOf(ban.since),
          until: stampOf(ban.until),
        })),
      locks: () =>
        guard.locks().map((lock) => ({
          ...lock,
          since: stampOf(lock.since),
          until: stampOf(lock.until),
        })),
      ban: async (address, durationMs) => (sharedBans ?? guard).ban(address, durationMs),
      unban: async (source) => (sharedBans ?? guard).unban(source),
      endOperatorBan: async (source) => (sharedBans ?? guard).endOperatorBan(source),
    },
    reloadRouting: async (changed) => {
      await engine.routing.reload(changed)
      if (changed === undefined || changed.of === 'tenant')
        await registrar.reloadTenants(changed?.ids)
    },
    lookUp: (uris) => engine.routing.lookUp(uris),
    trunks: {
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
        return status && stamped(status)
      },
    },
    routingWebhooks: engine.routingWebhooks,
    telemetry: () => engine.telemetry(),
    relays: () => engine.relays?.status() ?? [],
    postDialDelay: () => engine.totals.postDialDelay(),
    mos: () => engine.totals.mos(),
    listeners: () => engine.listeners,
    reachedAt: () => engine.reachedAt,
    isReady: () => engine.isReady,
    isDraining: () => engine.calls.isDraining,
  }
}
