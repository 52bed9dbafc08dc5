/** sipsak, the SIP administrator's Swiss army knife. */
import { execFile } from 'node:child_process'

export interface SipsakResult {
  /** 0: the request was answered as it should be. */
  readonly exitCode: number
  readonly output: string
}

/** Runs it to its end, at most `timeoutMs`; a run that is cut off has the exit code -1. */
export function sipsak(words: readonly string[], timeoutMs = 30_000): Promise<SipsakResult> {
  return new Promise((resolve) => {
    const child = execFile('sipsak', [...words], { timeout: timeoutMs }, (_error, out, complaint) =>
      resolve({ exitCode: child.exitCode ?? -1, output: out + complaint }),
    )
  })
}
