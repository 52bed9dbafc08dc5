/**
 * Calls: live ones, those that have ended, one of each, and one that is only tried. They are loaded
 * together.
 */
export { CallScreen } from '../../screens/call.tsx'
export { CallsScreen } from '../../screens/calls.tsx'
export { ChartsScreen } from '../../screens/charts.tsx'
export { HistoryScreen } from '../../screens/history.tsx'
export { SimulatorScreen } from '../../screens/simulator.tsx'
