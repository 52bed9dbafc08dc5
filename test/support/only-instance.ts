import { OnlyInstance } from '../../schema/instances/only-instance.ts'

/** The process of a test is alone, and serves. */
export function onlyInstance(now: () => number): OnlyInstance {
  const instance = new OnlyInstance({
    name: 'test-1',
    version: '0.0.0-test',
    startedAt: Date.UTC(2026, 0, 1),
    now,
    address: 'http://127.0.0.1:8080',
  })
  void instance.become('serving')
  return instance
}
