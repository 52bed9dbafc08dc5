/** Gives files of the operator the `drachtio-srf` of this process: no package is installed beside. */
import { registerHooks } from 'node:module'
import type { SrfLibrary } from './library.ts'

const name = 'drachtio-srf'
const url = 'tollgate:drachtio-srf'
/** Where the module finds it: a module that is made of text has no other way to a value. */
const place = Symbol.for(url)

/** `import` and `require` of drachtio-srf give `library` from now on. */
export function resolveLibrary(library: SrfLibrary): void {
  Object.defineProperty(globalThis, place, { value: library, configurable: true })
  registerHooks({
    resolve: (specifier, context, next) =>
      specifier === name
        ? { url, format: 'commonjs', shortCircuit: true }
        : next(specifier, context),
    load: (wanted, context, next) =>
      wanted === url
        ? {
            format: 'commonjs',
            source: `module.exports = globalThis[Symbol.for(${JSON.stringify(url)})]`,
            shortCircuit: true,
          }
        : next(wanted, context),
  })
}
