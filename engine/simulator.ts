/** Tells what would happen to a call now, with the parts that decide about real ones. */
import type { SimulatedSource, Simulation } from '../schema/contracts/engine.ts'
import {
  type ForeseenCall,
  type ForeseenRequest,
  simulate,
  type SimulationDeps,
} from './call/simulate.ts'
import type { FloodGuard } from './flood-guard/flood-guard.ts'
import type { Registrar } from './registrar/registrar.ts'

interface SimulatorDeps extends SimulationDeps {
  readonly registrar: SimulationDeps['registrar'] & Pick<Registrar, 'bindingsOf'>
  readonly guard: Pick<FloodGuard, 'isBanned' | 'isBannedByOperator'>
  /** Whether an address is never shut out. */
  readonly isKnown: (address: string, port: number) => boolean
}

/** Nothing changes. Undefined: the source does not exist, or may not call. */
export type Simulate = (request: ForeseenRequest) => Promise<ForeseenCall | undefined>

export const simulatorOf =
  (deps: SimulatorDeps): Simulate =>
  async (request) => {
    const simulated = await simulate(request, deps)
    return simulated && isBanned(request.source, simulated, deps)
      ? { ...simulated, verdict: { kind: 'dropped', code: 'banned' } }
      : simulated
  }

/**
 * An extension is banned when an operator has banned every address from which its phones have
 * registered.
 */
function isBanned(
  source: SimulatedSource,
  { origin }: Pick<Simulation, 'origin'>,
  { guard, isKnown, registrar }: SimulatorDeps,
): boolean {
  if (source.kind === 'address') return origin.kind === 'unknown' && guard.isBanned(source.address)
  if (source.kind !== 'extension') return false
  const phones = registrar.bindingsOf(source)
  return (
    phones.length > 0 &&
    phones.every(
      ({ source: { address, port } }) =>
        !isKnown(address, port) && guard.isBannedByOperator(address),
    )
  )
}
